#include "tests/sim/geo_job.h"

#include <algorithm>
#include <cmath>

#include "executor/communicator/geo_mode.h"
#include "framework/base/hash.h"

namespace penstock::test {
namespace {

constexpr auto kTick = std::chrono::milliseconds(20);

Var Held(std::string name, Shape shape) {
  Var var = TensorVar(std::move(name), DType::kFp32, std::move(shape));
  var.persistable = true;
  return var;
}

float FirstValue(const std::string& param, std::size_t i) {
  return std::sin(static_cast<float>(i + 3 * param.size()));
}

std::vector<float> CopyOf(const Tensor& tensor) {
  const auto values = tensor.Span<float>();
  return {values.begin(), values.end()};
}

}  // namespace

Shape GeoJob::ShapeOf(const std::string& param) {
  if (param == "w") return {5, 3};
  if (param == "b") return {1};
  return param == "t" ? Shape{40, 3} : Shape{9, 2};
}

GeoJob::GeoJob(GeoSetup setup, std::uint64_t seed, Faults faults)
    : setup_(std::move(setup)),
      settings_{
          .trainers = setup_.trainers,
          .push_every = setup_.push_every,
          .variables = {{.name = "w", .pieces = {{"w.0", "ps1:1", 3}, {"w.1", "ps0:1", 2}}},
                        {.name = "b", .pieces = {{"b", "ps0:1", 1}}},
                        {.name = "t", .rows = true, .pieces = {{"t.0", "ps0:1", 25}, {"t.1", "ps1:1", 15}}},
                        {.name = "u", .rows = true, .pieces = {{"u", "ps1:1", 9}}}}},
      net_(seed, faults) {
  for (int s = 0; s < 2; ++s) AddServer(s);
  for (int t = 0; t < setup_.trainers; ++t) roles_.push_back(std::make_unique<Role>(net_));
}

GeoJob::~GeoJob() = default;

Program GeoJob::PserverProgram(int server) const {
  Program program;
  std::vector<BlockRef> blocks;
  std::vector<std::string> arriving;
  const std::string& address = addresses_[static_cast<std::size_t>(server)];
  for (const communicator::GeoVariable& variable : settings_.variables) {
    for (const communicator::GeoVariable::Piece& piece : variable.pieces) {
      if (piece.pserver != address) continue;
      Block& block = program.AddBlock(0);
      blocks.push_back({block.index()});
      const std::string delta = piece.name + ".delta";
      arriving.push_back(StrCat(delta, ":", block.index()));
      block.Append(Op("sum").AddInput("X", {piece.name, delta}).AddOutput("Out", {piece.name}));
      const Shape shape = ShapeOf(variable.name).WithRows(piece.rows);
      Var sent = TensorVar(delta, DType::kFp32, shape);
      if (variable.rows) sent.kind = VarKind::kSelectedRows;
      program.MutableBlock(0).SetVar(Held(piece.name, shape));
      program.MutableBlock(0).SetVar(std::move(sent));
    }
  }
  Op serve("listen_and_serv");
  serve.Set("endpoint", address).Set("Fanin", std::int32_t{setup_.trainers});
  serve.Set("distributed_mode", std::int32_t{3})
      .Set("optimize_blocks", blocks)
      .Set("grad_to_block_id", arriving);
  program.MutableBlock(0).Append(std::move(serve));
  return program;
}

Program GeoJob::StartupOf(int trainer) const {
  Program program;
  Block& main = program.MutableBlock(0);
  for (const communicator::GeoVariable& variable : settings_.variables) {
    main.SetVar(Held(variable.name, ShapeOf(variable.name)));
    for (const communicator::GeoVariable::Piece& piece : variable.pieces) {
      main.SetVar(TensorVar(piece.name, DType::kFp32, ShapeOf(variable.name).WithRows(piece.rows)));
      main.Append(Op("recv")
                      .AddOutput("Out", {piece.name})
                      .Set("trainer_id", std::int32_t{trainer})
                      .Set("epmap", std::vector<std::string>{piece.pserver}));
    }
  }
  main.Append(Op("fetch_barrier").Set("endpoints", addresses_).Set("trainer_id", std::int32_t{trainer}));
  return program;
}

void GeoJob::AddServer(int index) {
  Server& server = *servers_.emplace_back(std::make_unique<Server>());
  server.program = PserverProgram(index);
  for (const communicator::GeoVariable& variable : settings_.variables) {
    const Shape shape = ShapeOf(variable.name);
    Dim begin = 0;
    for (const communicator::GeoVariable::Piece& piece : variable.pieces) {
      const Dim first = std::exchange(begin, begin + piece.rows);
      if (piece.pserver != addresses_[static_cast<std::size_t>(index)]) continue;
      Tensor& value = server.scope.FindOrCreate(piece.name)->As<Tensor>();
      value = Tensor(DType::kFp32, shape.WithRows(piece.rows));
      const auto width = static_cast<std::size_t>(shape.rank() > 1 ? shape.RowWidth() : 1);
      for (std::size_t i = 0; i < value.Span<float>().size(); ++i)
        value.Span<float>()[i] = FirstValue(variable.name, static_cast<std::size_t>(first) * width + i);
    }
  }
}

// Called before a block runs: records the piece and the rows to which it adds.
void GeoJob::Note(const Program& program, int block, Scope& scope) {
  const Op& sum = *program.block(block).ops().front().op;
  const std::string& piece = sum.Input("X")[0];
  const Tensor& value = scope.Find(piece)->As<Tensor>();
  const Dim width = value.shape().rank() > 1 ? value.shape().RowWidth() : 1;
  Chunk& chunk = chunks_[piece][(value.Data<float>() - WholeOf(piece)->Data<float>()) / width];
  if (chunk.first.empty()) chunk.first = CopyOf(value);
  GeoDelta& delta = chunk.deltas.emplace_back();
  const Variable& sent = *scope.Find(sum.Input("X")[1]);
  if (const auto* rows = sent.If<SelectedRows>()) {
    delta = {rows->rows, CopyOf(rows->value)};
    return;
  }
  delta.values = CopyOf(*sent.If<Tensor>());
  for (Dim row = 0; row < value.shape()[0]; ++row) delta.rows.push_back(row);
}

std::vector<std::int64_t> GeoJob::TrainStep(const std::string& param, bool rows, int trainer,
                                            std::size_t step, Dim begin, std::vector<float>& values) {
  const Shape shape = ShapeOf(param);
  const Dim width = shape.rank() > 1 ? shape.RowWidth() : 1;
  const Dim end = begin + static_cast<Dim>(values.size()) / width;
  std::vector<std::int64_t> touched;
  if (rows) touched = ToyIds({.name = param, .shape = shape}, trainer, step);
  for (Dim row = begin; row < end; ++row) {
    if (rows && std::find(touched.begin(), touched.end(), row) == touched.end()) continue;
    for (Dim i = row * width; i < (row + 1) * width; ++i) {
      float& value = values[static_cast<std::size_t>(i - begin * width)];
      value += 0.1f * std::cos(static_cast<float>(i) + static_cast<float>(trainer) * 1.7f +
                               static_cast<float>(step) * 0.3f) -
               0.05f * value;
    }
  }
  return touched;
}

Status GeoJob::ReceiveStart(int id, Role& role, Scope& scope) {
  PENSTOCK_RETURN_IF_ERROR(role.client.Attach(StartupOf(id)));
  std::vector<Variable> pieces;
  pieces.reserve(16);
  for (const communicator::GeoVariable& variable : settings_.variables) {
    const Shape shape = ShapeOf(variable.name);
    Tensor& value = scope.FindOrCreate(variable.name)->As<Tensor>();
    value = Tensor(DType::kFp32, shape);
    Dim begin = 0;
    for (const communicator::GeoVariable::Piece& piece : variable.pieces) {
      PENSTOCK_ASSIGN_OR_RETURN(
          const PullHandle handle,
          role.client.DeclarePull(
              {.pserver = piece.pserver, .name = piece.name, .shape = shape.WithRows(piece.rows)}));
      Variable& rows = pieces.emplace_back();
      rows.As<Tensor>().ViewRows(value, begin, begin + piece.rows);
      begin += piece.rows;
      PENSTOCK_RETURN_IF_ERROR(role.client.Pull(handle, rows));
    }
  }
  return role.client.CompletePulls({});
}

ToyValues GeoJob::ValuesOf(const Scope& scope) const {
  ToyValues values;
  for (const communicator::GeoVariable& variable : settings_.variables)
    values[variable.name] = CopyOf(scope.Find(variable.name)->As<Tensor>());
  return values;
}

Status GeoJob::Train(int id, Role& role) {
  const auto scope = std::make_shared<Scope>();
  PENSTOCK_RETURN_IF_ERROR(ReceiveStart(id, role, *scope));
  role.trainer.start = ValuesOf(*scope);
  PENSTOCK_ASSIGN_OR_RETURN(Program exchange, communicator::ExchangeProgram(StartupOf(id), settings_));
  const communicator::PartOptions parts = PartsOf();
  const auto mode = communicator::MakeGeoMode(role.client, settings_, std::move(exchange),
                                              {.parts = parts, .own = {"own"}});
  if (parts.disk != nullptr) scope->FindOrCreate("own")->As<Tensor>() = Tensor(DType::kInt64, {1});
  Tensor* const own = parts.disk == nullptr ? nullptr : scope->Find("own")->If<Tensor>();
  if (own != nullptr) own->Span<std::int64_t>()[0] = 0;
  PENSTOCK_ASSIGN_OR_RETURN(const auto resumed, communicator::TrainerParts::StepsIn(parts, id));
  role.trainer.first_step = static_cast<std::size_t>(resumed.value_or(0));
  PENSTOCK_RETURN_IF_ERROR(mode->Begin(scope));
  role.trainer.begun = ValuesOf(*scope);
  for (std::size_t step = role.trainer.first_step;
       step < static_cast<std::size_t>(setup_.steps[static_cast<std::size_t>(id)]); ++step) {
    for (std::size_t i = 0; i < settings_.variables.size(); ++i) {
      const communicator::GeoVariable& variable = settings_.variables[i];
      Tensor& value = scope->Find(variable.name)->As<Tensor>();
      std::vector<float> trained = CopyOf(value);
      const auto ids = TrainStep(variable.name, variable.rows, id, step, 0, trained);
      std::copy(trained.begin(), trained.end(), value.Span<float>().begin());
      const communicator::Table table{.name = variable.name, .index = i};
      if (variable.rows) PENSTOCK_RETURN_IF_ERROR(mode->Touch(table, ids));
    }
    if (own != nullptr && own->Span<std::int64_t>()[0]++ != static_cast<std::int64_t>(step))
      return FailedPrecondition("E-sim-own", "trainer ", id, " has another value of its own in step ", step);
    PENSTOCK_RETURN_IF_ERROR(mode->EndLocalStep(*scope));
    role.trainer.after.push_back(ValuesOf(*scope));
  }
  PENSTOCK_RETURN_IF_ERROR(mode->Stop());
  return role.client.Complete();
}

void GeoJob::Tick(Role& role) {
  role.client.session().Tick();
  if (!role.ended) net_.After(kTick, [this, &role] { Tick(role); });
}

GeoJob::Role* GeoJob::FindReady() {
  const auto ready = std::find_if(roles_.begin(), roles_.end(), [](const auto& role) {
    return role->here && !role->ended && role->client.MayGoOn();
  });
  return ready == roles_.end() ? nullptr : ready->get();
}

bool GeoJob::AllEnded() const {
  return std::all_of(roles_.begin(), roles_.end(), [](const auto& role) { return role->ended; }) &&
         std::all_of(servers_.begin(), servers_.end(),
                     [](const auto& server) { return server->pserver->Ended().has_value(); });
}

Status GeoJob::StartServers() {
  for (const auto& each : servers_) {
    Server& server = *each;
    pserver::PserverOptions options;
    options.job = "sim";
    options.chunk_limit = 32;
    options.part_bytes = 28;
    options.inline_bytes = net_.Uniform() < 0.5 ? 0 : 1000;
    options.run = [this](std::function<void()> work) { net_.After(net_.Delay(), std::move(work)); };
    options.report = [](const std::string&) {};
    options.clock = &net_.clock();
    options.reconnect_deadline = net_.reconnect_deadline();
    if (setup_.disk != nullptr) {
      options.disk = setup_.disk.get();
      options.checkpoints = {.folder = "ckpt",
                             .every = setup_.checkpoint_every,
                             .resume = setup_.resume,
                             .servers = addresses_,
                             .run = setup_.run};
    }
    PENSTOCK_ASSIGN_OR_RETURN(server.pserver,
                              pserver::Pserver::Make(server.program, *server.program.main().ops().back().op,
                                                     server.scope, SimOps(), runner_, options));
    server.service = std::make_unique<pserver::NativeService>(*server.pserver);
    net_.After(net_.Delay() * 10, [this, &server] {
      server.listener =
          std::move(net_.transport().Listen(server.pserver->address(), *server.service)).value();
    });
  }
  return OkStatus();
}

void GeoJob::Start(int id, Role& role) {
  role.thread = std::thread([this, id, &role] {
    role.turn.Take();
    role.trainer.status = Train(id, role);
    if (!role.trainer.status.ok()) role.client.Abandon(role.trainer.status);
    role.ended = true;
    role.turn.Return();
  });
  net_.After(net_.Delay() * 10, [this, &role] {
    role.here = true;
    Tick(role);
  });
}

communicator::PartOptions GeoJob::PartsOf() const {
  return {.disk = setup_.disk.get(),
          .folder = "ckpt",
          .run = setup_.run,
          .every = setup_.checkpoint_every,
          .resume = setup_.resume};
}

Status GeoJob::Begin() {
  runner_.before = [this](const Program& program, int block, Scope& scope) { Note(program, block, scope); };
  PENSTOCK_RETURN_IF_ERROR(StartServers());
  for (const communicator::GeoVariable& variable : settings_.variables)
    for (const auto& piece : variable.pieces) restored_[piece.name] = CopyOf(*WholeOf(piece.name));
  for (std::size_t t = 0; t < roles_.size(); ++t) Start(static_cast<int>(t), *roles_[t]);
  return OkStatus();
}

Status GeoJob::RunUntilKilled(std::uint64_t messages) {
  PENSTOCK_RETURN_IF_ERROR(Begin());
  const auto is_over = [&] {
    return net_.messages() >= messages ||
           std::any_of(roles_.begin(), roles_.end(), [](const auto& role) { return role->ended; });
  };
  bool hangs = false;
  while (!is_over() && !hangs) {
    if (Role* role = FindReady()) {
      role->turn.Give();
    } else {
      hangs = !net_.RunUntil([&] { return FindReady() != nullptr || is_over(); }, std::chrono::minutes(10));
    }
  }
  setup_.disk->CrashAt(setup_.disk->operations());  // no process writes any more
  for (const auto& role : roles_) {
    role->client.Cancel();
    while (!role->ended) role->turn.Give();
    role->thread.join();
  }
  setup_.disk->Restart();
  return hangs ? DeadlineExceeded("E-sim-hang", "the job stands still") : OkStatus();
}

Status GeoJob::Run() {
  PENSTOCK_RETURN_IF_ERROR(Begin());
  bool hangs = false;
  while (!AllEnded()) {
    if (Role* role = FindReady()) {
      role->turn.Give();
    } else if (!net_.RunUntil([&] { return FindReady() != nullptr || AllEnded(); },
                              std::chrono::minutes(10))) {
      if (std::exchange(hangs, true)) break;
      for (const auto& waiting : roles_) waiting->client.Cancel();
    }
  }
  for (const auto& role : roles_) role->thread.join();
  if (hangs) return DeadlineExceeded("E-sim-hang", "the job did not end");
  for (const auto& role : roles_) PENSTOCK_RETURN_IF_ERROR(role->trainer.status);
  return OkStatus();
}

std::vector<float> GeoJob::RowsOf(const std::string& piece, std::span<const float> whole, Dim begin,
                                  std::size_t values) const {
  const Shape& shape = WholeOf(piece)->shape();
  const auto first = whole.begin() + begin * (shape.rank() > 1 ? shape.RowWidth() : 1);
  return {first, first + static_cast<std::ptrdiff_t>(values)};
}

std::vector<float> GeoJob::RowsOnServer(const std::string& piece, Dim begin, std::size_t values) const {
  return RowsOf(piece, WholeOf(piece)->Span<float>(), begin, values);
}

std::vector<float> GeoJob::RestoredRows(const std::string& piece, Dim begin, std::size_t values) const {
  return RowsOf(piece, restored_.at(piece), begin, values);
}

const Tensor* GeoJob::WholeOf(const std::string& piece) const {
  for (const auto& server : servers_) {
    if (const Variable* held = server->scope.Find(piece)) return held->If<Tensor>();
  }
  return nullptr;
}

}  // namespace penstock::test
