#include "tests/sim/scale_job.h"

#include <algorithm>

#include "executor/checkpoint/folder.h"

namespace penstock::test {
namespace {

// Where each parameter is depends on the number of servers.
ToyJob JobOn(const ScaleSetup& setup, std::size_t placement, std::uint64_t seed) {
  const int servers = setup.placements[placement].servers;
  ToyJob job;
  job.trainers = setup.trainers;
  job.lr_block = setup.lr_block;
  job.checkpoint_every = seed % 5 == 4 ? 1 + seed % 2 : 1000;  // mostly, only requests bring checkpoints
  for (int s = 0; s < servers; ++s) job.servers.push_back(StrCat("ps", placement, ".", s, ":1"));
  job.params = {{.name = "w", .shape = {9, 3}, .optimizer = "adam", .decay = true},
                {.name = "b", .shape = {1}, .optimizer = "sgd"},
                {.name = "table", .shape = {40, 3}, .optimizer = "adam", .table = true, .salt = seed},
                {.name = "wide", .shape = {2, 17}, .optimizer = "momentum"}};
  for (std::size_t i = 0; i < job.params.size(); ++i)
    job.params[i].server = static_cast<int>((i + seed) % static_cast<std::size_t>(servers));
  return job;
}

std::string RunOf(std::uint64_t first) { return StrCat("sim.", first); }

}  // namespace

ScaleJob::ScaleJob(ScaleSetup setup, std::uint64_t seed, Faults faults)
    : setup_(std::move(setup)), net_(seed, faults), disk_(seed) {
  for (std::size_t p = 0; p < setup_.placements.size(); ++p) jobs_.push_back(JobOn(setup_, p, seed));
  runner_.meanwhile = [this] { net_.RunMeanwhile(); };
  for (int t = 0; t < setup_.trainers; ++t) {
    Role& role = *roles_.emplace_back(std::make_unique<Role>());
    role.client = std::make_unique<client::JobClient>([this, t, &role] {
      client::SessionOptions options = SimClient::OptionsOf(net_);
      auto made = std::make_unique<SimClient>(net_.TransportOf(StrCat("trainer ", t)), options, role.turn);
      role.clients.push_back(made.get());
      return made;
    });
  }
}

ScaleJob::~ScaleJob() = default;

void ScaleJob::StartServers(std::size_t placement) {
  placement_ = placement;
  asked_ = false;
  for (std::size_t s = 0; s < jobs_[placement].servers.size(); ++s)
    StartServer({.placement = placement, .index = static_cast<int>(s)});
}

void ScaleJob::StartServer(const Placed& place) {
  const ToyJob& job = jobs_[place.placement];
  Server& server = *servers_.emplace_back(std::make_unique<Server>());
  places_.push_back(place);
  server.program = job.Pserver(place.index);
  job.Start(place.index, server.scope);
  const std::uint64_t first = place.placement == 0 ? 0 : setup_.placements[place.placement - 1].until;
  pserver::PserverOptions options;
  options.job = "sim";
  options.chunk_limit = 32;
  options.part_bytes = 20;
  options.inline_bytes = net_.Uniform() < 0.5 ? 0 : 1000;
  options.run = [this, &server](std::function<void()> work) {
    net_.After(net_.Delay(), [&server, work = std::move(work)] {
      if (!server.stopped) work();
    });
  };
  options.report = [&server](const std::string& line) { server.reports.push_back(line); };
  options.clock = &net_.clock();
  options.resend_after = std::chrono::milliseconds(100);
  options.reconnect_deadline = net_.reconnect_deadline();
  options.disk = &disk_;
  options.checkpoints = {.folder = "ckpt",
                         .every = job.checkpoint_every,
                         .servers = job.servers,
                         .run = RunOf(first),
                         .restarts_max = 100,
                         .restarts = place.restarts};
  if (place.placement > 0) options.checkpoints.resume = first;
  auto made = pserver::Pserver::Make(server.program, *server.program.main().ops().back().op, server.scope,
                                     SimOps(), runner_, options);
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  server.pserver = std::move(made).value();
  server.service = std::make_unique<pserver::NativeService>(*server.pserver);
  net_.After(net_.Delay() * 10, [this, &server] {
    if (server.killed) return;
    server.listener = std::move(net_.transport().Listen(server.pserver->address(), *server.service)).value();
    Tick(server);
  });
}

// Kills a server, and starts it again by itself.
void ScaleJob::Kill(std::size_t at) {
  Server& server = *servers_[at];
  Placed place = places_[at];
  net_.Kill(server.pserver->address());
  server.listener.reset();
  server.killed = server.stopped = true;
  ++restarts_;
  ++place.restarts;
  net_.After(net_.Delay() * 20, [this, place] { StartServer(place); });
}

void ScaleJob::Tick(Server& server) {
  if (server.killed) return;
  server.pserver->Tick();
  const std::optional<Status> end = server.pserver->Ended();
  if (end && !end->ok() && !server.pserver->HasListeners()) {  // its process ends
    server.listener.reset();
    return;
  }
  net_.After(kTick, [this, &server] { Tick(server); });
}

void ScaleJob::KillWhileCutting() {
  for (std::size_t at = 0; at < servers_.size(); ++at) {
    if (places_[at].placement != placement_ || servers_[at]->killed || net_.Uniform() < 0.5) continue;
    net_.After(net_.Delay() * 10, [this, at] {
      if (placement_ == places_[at].placement && !servers_[at]->killed && !servers_[at]->pserver->Ended())
        Kill(at);
    });
    return;
  }
}

void ScaleJob::Look() {
  net_.After(kTick, [this] { Look(); });
  if (placement_ + 1 == jobs_.size()) return;
  const std::uint64_t step = setup_.placements[placement_].until;
  const std::uint64_t first = placement_ == 0 ? 0 : setup_.placements[placement_ - 1].until;
  if (!asked_) {
    if (!std::ranges::all_of(roles_, [&](const auto& role) { return role->waits_for == placement_ + 1; }))
      return;
    asked_ = true;
    ASSERT_TRUE(disk_.MakeFolder("ckpt/stop").ok());
    ASSERT_TRUE(ReplaceFile(disk_, "ckpt/stop/least", StrCat(RunOf(first), "\n", step, "\n")).ok());
    ASSERT_TRUE(ReplaceFile(disk_, "ckpt/stop/request", RunOf(first) + "\n").ok());
    if (setup_.kills) KillWhileCutting();
    return;
  }
  const auto found = checkpoint::FindCheckpoints(disk_, "ckpt");
  ASSERT_TRUE(found.ok()) << found.status().ToString();
  if (!found->empty() && found->back().step == step && found->back().whole()) StartServers(placement_ + 1);
}

Status ScaleJob::Declare(int id, Role& role, std::size_t placement, Handles& handles) {
  const ToyJob& job = jobs_[placement];
  const auto remote = [&](const ToyParam& param, const std::string& name) {
    return RemotePiece{.pserver = job.servers[Index(param.server)],
                       .name = name,
                       .dtype = DType::kFp32,
                       .shape = param.shape,
                       .trainer_id = id};
  };
  handles = {};
  PENSTOCK_RETURN_IF_ERROR(role.client->Attach(job.TrainerStartup(id)));
  PENSTOCK_RETURN_IF_ERROR(role.client->Attach(job.Trainer(id)));
  for (const ToyParam& param : job.params) {
    PullHandle pull;
    RowsHandle rows;
    if (param.table) {
      PENSTOCK_ASSIGN_OR_RETURN(rows, role.client->DeclareRows(remote(param, param.name)));
    } else {
      PENSTOCK_ASSIGN_OR_RETURN(pull, role.client->DeclarePull(remote(param, param.name)));
    }
    PENSTOCK_ASSIGN_OR_RETURN(const PushHandle push,
                              role.client->DeclarePush(remote(param, job.GradName(param, id))));
    handles.pulls.push_back(pull);
    handles.tables.push_back(rows);
    handles.pushes.push_back(push);
  }
  handles.values.resize(job.params.size());
  PENSTOCK_ASSIGN_OR_RETURN(handles.peers, role.client->DeclarePeers(job.servers, id));
  return OkStatus();
}

Status ScaleJob::PullAll(const ToyJob& job, Role& role, Handles& handles) {
  ToyValues& seen = role.seen.emplace_back();
  for (std::size_t i = 0; i < job.params.size(); ++i)
    if (!job.params[i].table)
      PENSTOCK_RETURN_IF_ERROR(role.client->Pull(handles.pulls[i], handles.values[i]));
  PENSTOCK_RETURN_IF_ERROR(role.client->CompletePulls(handles.peers));
  for (std::size_t i = 0; i < job.params.size(); ++i) {
    if (job.params[i].table) continue;
    const auto values = handles.values[i].If<Tensor>()->Span<float>();
    seen[job.params[i].name].assign(values.begin(), values.end());
  }
  return OkStatus();
}

Status ScaleJob::TrainStep(const ToyJob& job, int id, Role& role, Handles& handles, std::uint64_t step) {
  ToyValues& seen = role.seen.back();
  for (std::size_t i = 0; i < job.params.size(); ++i) {
    const ToyParam& param = job.params[i];
    std::vector<float> at = seen[param.name];
    const std::vector<std::int64_t> ids =
        param.table ? job.IdsOf(param, id, step) : std::vector<std::int64_t>();
    Tensor rows;
    if (param.table) {
      PENSTOCK_RETURN_IF_ERROR(role.client->PullRows(handles.tables[i], ids, rows));
      PENSTOCK_RETURN_IF_ERROR(role.client->CompleteRows());
      at.assign(rows.Span<float>().begin(), rows.Span<float>().end());
      seen.erase(param.name);
      seen[StrCat("rows of ", param.name)] = at;
    }
    const std::vector<float> values = ToyGradient(at, param.name, id, step);
    Tensor gradient(DType::kFp32, param.table ? rows.shape() : param.shape);
    std::copy(values.begin(), values.end(), gradient.Span<float>().begin());
    Variable sent;
    if (param.table) {
      sent.As<SelectedRows>() = {ids, param.shape[0], gradient};
    } else {
      sent.As<Tensor>() = gradient;
    }
    PENSTOCK_RETURN_IF_ERROR(role.client->Push(handles.pushes[i], sent));
  }
  PENSTOCK_RETURN_IF_ERROR(role.client->EndStep(handles.peers));
  return PullAll(job, role, handles);
}

// Until the servers of a placement have been started.
Status ScaleJob::WaitFor(Role& role, std::size_t placement) {
  role.waits_for = placement;
  while (!MayGoOn(role)) {
    role.turn.Return();
    role.turn.Take();
  }
  return OkStatus();
}

// They are answered by an error, and reach nobody.
Status ScaleJob::TryOldRoutes(Role& role, Handles& old, const Program& old_program) {
  Variable value;
  value.As<Tensor>() = Tensor(DType::kFp32, {9, 3});
  for (const Status& answer :
       {role.client->Push(old.pushes[0], value), role.client->Pull(old.pulls[0], value),
        role.client->EndStep(old.peers), role.client->Attach(old_program)}) {
    ++old_routes_;
    if (answer.id() != "E-scale-moved")
      return FailedPrecondition("E-sim-route", "an old route is answered: ", answer.ToString());
  }
  return OkStatus();
}

Status ScaleJob::Train(int id, Role& role) {
  Handles handles;
  std::uint64_t step = 0;
  for (std::size_t p = 0; p < jobs_.size(); ++p) {
    if (p > 0) {
      PENSTOCK_RETURN_IF_ERROR(WaitFor(role, p));
      PENSTOCK_RETURN_IF_ERROR(role.client->Move());
    }
    Handles old = std::move(handles);
    PENSTOCK_RETURN_IF_ERROR(Declare(id, role, p, handles));
    if (p == 0) {
      PENSTOCK_RETURN_IF_ERROR(PullAll(jobs_[p], role, handles));
    } else {
      PENSTOCK_RETURN_IF_ERROR(TryOldRoutes(role, old, jobs_[p - 1].Trainer(id)));
      handles.values = std::move(old.values);
    }
    for (; step < setup_.placements[p].until; ++step)
      PENSTOCK_RETURN_IF_ERROR(TrainStep(jobs_[p], id, role, handles, step));
  }
  return role.client->Complete();
}

void ScaleJob::Tick(Role& role) {
  for (SimClient* client : role.clients) client->session().Tick();
  if (!role.ended) net_.After(kTick / 10, [this, &role] { Tick(role); });
}

bool ScaleJob::MayGoOn(const Role& role) const {
  return role.waits_for <= placement_ &&
         std::ranges::all_of(role.clients, [](const SimClient* client) { return client->MayGoOn(); });
}

ScaleJob::Role* ScaleJob::FindReady() {
  const auto ready = std::ranges::find_if(
      roles_, [&](const auto& role) { return role->here && !role->ended && MayGoOn(*role); });
  return ready == roles_.end() ? nullptr : ready->get();
}

// Of the last placement; nothing depends on how earlier servers end.
bool ScaleJob::IsLast(std::size_t at) const {
  return !servers_[at]->killed && places_[at].placement + 1 == jobs_.size();
}

bool ScaleJob::AllEnded() const {
  for (std::size_t at = 0; at < servers_.size(); ++at)
    if (IsLast(at) && !servers_[at]->pserver->Ended()) return false;
  return std::ranges::all_of(roles_, [](const auto& role) { return role->ended; });
}

Status ScaleJob::Run() {
  StartServers(0);
  Look();
  for (std::size_t t = 0; t < roles_.size(); ++t) {
    Role& role = *roles_[t];
    role.thread = std::thread([this, t, &role] {
      role.turn.Take();
      role.status = Train(static_cast<int>(t), role);
      if (!role.status.ok()) role.client->Abandon(role.status);
      role.ended = true;
      role.turn.Return();
    });
    net_.After(net_.Delay() * 10, [this, &role] {
      role.here = true;
      Tick(role);
    });
  }
  bool hangs = false;
  std::string standing;
  while (!AllEnded()) {
    if (Role* role = FindReady()) {
      role->turn.Give();
    } else if (!net_.RunUntil([&] { return FindReady() != nullptr || AllEnded(); },
                              std::chrono::minutes(10))) {
      if (std::exchange(hangs, true)) break;
      standing = HowItStands();
      placement_ = jobs_.size();  // nobody waits for it any more
      for (const auto& waiting : roles_) waiting->client->Cancel();
    }
  }
  for (const auto& role : roles_) role->thread.join();
  if (hangs) return DeadlineExceeded("E-sim-hang", "the job did not end", standing);
  for (const auto& role : roles_) PENSTOCK_RETURN_IF_ERROR(role->status);
  for (std::size_t at = 0; at < servers_.size(); ++at)
    if (IsLast(at)) PENSTOCK_RETURN_IF_ERROR(*servers_[at]->pserver->Ended());
  return OkStatus();
}

// What each process waits for or has reported, for failure messages.
std::string ScaleJob::HowItStands() {
  std::string text = StrCat("\n  placement ", placement_, asked_ ? ", asked" : "");
  for (std::size_t t = 0; t < roles_.size(); ++t) {
    const Role& role = *roles_[t];
    text +=
        StrCat("\n  trainer ", t, role.ended ? " has ended" : "", ", waits for placement ", role.waits_for);
    for (SimClient* client : role.clients)
      text += StrCat("\n    step ", client->session().step(), ": ", client->session().WaitingFor(), " ",
                     client->session().status().ToString());
  }
  for (std::size_t at = 0; at < servers_.size(); ++at) {
    const Server& server = *servers_[at];
    text += StrCat("\n  server ", server.pserver->address(), server.killed ? " is killed" : "");
    if (const std::optional<Status> end = server.pserver->Ended())
      text += StrCat(", ended: ", end->ToString());
    for (const std::string& line : server.reports) text += StrCat("\n    ", line);
  }
  return text;
}

ToyValues ScaleJob::Held() const {
  ToyValues held;
  for (std::size_t at = 0; at < servers_.size(); ++at) {
    for (const ToyParam& param : jobs_.back().params) {
      if (!IsLast(at) || param.server != places_[at].index) continue;
      const auto values = servers_[at]->scope.Find(param.name)->If<Tensor>()->Span<float>();
      held[param.name] = {values.begin(), values.end()};
    }
  }
  return held;
}

}  // namespace penstock::test
