#include "tests/sim/toy_job.h"

#include <cmath>
#include <numeric>
#include <random>

#include "framework/base/hash.h"
#include "framework/tensor/half.h"
#include "tests/sim/sim_ops.h"

namespace penstock::test {
namespace {

// The state of a parameter's optimizer: slot, name, shape, initial value.
struct State {
  std::string slot, name;
  Shape shape;
  float first;
};

std::vector<State> StatesOf(const ToyParam& param) {
  if (param.optimizer == "momentum") return {{"Velocity", param.name + "_velocity", param.shape, 0}};
  if (param.optimizer != "adam") return {};
  return {{"Moment1", param.name + "_m1", param.shape, 0},
          {"Moment2", param.name + "_m2", param.shape, 0},
          {"Beta1Pow", param.name + "_b1", {1}, 0.9f},
          {"Beta2Pow", param.name + "_b2", {1}, 0.999f}};
}

void Fill(Scope& scope, const std::string& name, const Shape& shape,
          const std::function<float(std::size_t)>& value) {
  Tensor& tensor = scope.FindOrCreate(name)->As<Tensor>();
  tensor = Tensor(DType::kFp32, shape);
  const auto values = tensor.Span<float>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = value(i);
}

std::uint64_t Mixed(std::uint64_t salt) { return salt == 0 ? 0 : std::mt19937_64(salt)(); }

void FillRows(Scope& scope, const std::string& name, const ToyParam& table, std::vector<std::int64_t> ids,
              const std::vector<float>& values) {
  Tensor tensor(DType::kFp32, table.shape.WithRows(static_cast<Dim>(ids.size())));
  std::copy(values.begin(), values.end(), tensor.Span<float>().begin());
  scope.FindOrCreate(name)->As<SelectedRows>() = {std::move(ids), table.shape[0], tensor};
}

}  // namespace

std::string ToyCounter(int trainer) { return StrCat("steps of ", trainer); }
std::string ToyBackup(const std::string& param, int trainer) {
  return StrCat(param, " as trainer ", trainer, " has it");
}

std::string ToyJob::GradName(const ToyParam& param, int trainer) const {
  if (async) return StrCat("gradient of ", param.name);
  return StrCat("gradient of ", param.name, " by ", trainer);  // names are not parsed, so any name is valid
}

Var ToyJob::Persistable(std::string name, Shape shape) {
  Var var = TensorVar(std::move(name), DType::kFp32, std::move(shape));
  var.persistable = true;
  return var;
}

Var ToyJob::GradVar(const ToyParam& param, std::string name) {
  Var var = TensorVar(std::move(name), DType::kFp32, param.shape);
  if (param.table) var.kind = VarKind::kSelectedRows;
  return var;
}

Program ToyJob::Pserver(int server) const {
  Program program;
  Op serve("listen_and_serv");
  std::vector<std::string> received, held;
  std::vector<BlockRef> blocks;
  program.MutableBlock(0).SetVar(Persistable("rate", {1}));
  if (lr_block) {
    Block& block = program.AddBlock(0);
    blocks.push_back({block.index()});
    serve.Set("lr_decay_block_id", std::int32_t{block.index()});
    if (async) CountSteps(program, block.index());
    program.MutableBlock(block.index())
        .Append(Op("scale").AddInput("X", {"rate"}).AddOutput("Out", {"rate"}).Set("scale", 0.5f));
  }
  AddNorms(program, server, blocks);
  for (const ToyParam& param : params) {
    if (param.server != server) continue;
    if (param.start) {
      program.MutableBlock(0).SetVar(Persistable(param.name, param.shape));
      held.push_back(param.name);
      continue;
    }
    Block& block = program.AddBlock(0);
    blocks.push_back({block.index()});
    const std::string grad = param.name + "@GRAD";
    for (int t = 0; t < (async ? 1 : trainers); ++t) received.push_back(GradName(param, t));
    if (!param.clipped) AddMerge(program, block.index(), param);
    Block& body = program.MutableBlock(block.index());
    if (param.decay) {
      program.MutableBlock(0).SetVar(Persistable(param.name + "_decay", param.shape));
      body.Append(Op("scale")
                      .AddInput("X", {param.name})
                      .AddOutput("Out", {param.name + "_decay"})
                      .Set("scale", 0.01f));
      body.Append(Op("sum").AddInput("X", {grad, param.name + "_decay"}).AddOutput("Out", {grad}));
    }
    std::string applied = delay ? CorrectForDelay(program, block.index(), param, grad) : grad;
    if (param.clipped) {
      applied = param.name + "@CLIPPED";
      program.MutableBlock(0).SetVar(Persistable(applied, param.shape));
      body.Append(
          Op("times").AddInput("X", {grad}).AddInput("Factor", {"factor"}).AddOutput("Out", {applied}));
    }
    Op update(param.optimizer);
    update.AddInput("Param", {param.name}).AddInput("Grad", {applied}).AddInput("LearningRate", {"rate"});
    update.AddOutput("ParamOut", {param.name}).SetLocation("train.py:7 in main");
    for (const State& state : StatesOf(param)) {
      program.MutableBlock(0).SetVar(Persistable(state.name, state.shape));
      update.AddInput(state.slot, {state.name}).AddOutput(state.slot + "Out", {state.name});
    }
    body.Append(std::move(update));
  }
  serve.AddInput("X", received)
      .Set("endpoint", servers[static_cast<std::size_t>(server)])
      .Set("Fanin", std::int32_t{trainers});
  serve.Set("optimize_blocks", blocks).Set("start_values", held);
  if (async) serve.Set("distributed_mode", std::int32_t{2});
  if (delay) serve.Set("dc_asgd", true);
  std::vector<int> senders(static_cast<std::size_t>(trainers));
  std::iota(senders.begin(), senders.end(), 0);
  WritePolicies(PoliciesOf(senders, server), program.mutable_meta());
  program.MutableBlock(0).Append(std::move(serve));
  return program;
}

JobPolicies ToyJob::PoliciesOf(const std::vector<int>& senders, int server) const {
  JobPolicies policies{.staleness = staleness, .backup_trainers = backup_trainers};
  for (const ToyParam& param : params) {
    if (param.compression.none() || (server >= 0 && param.server != server)) continue;
    for (const int trainer : senders)
      policies.compression.by_name[GradName(param, trainer)] = param.compression;
  }
  return policies;
}

void ToyJob::CountSteps(Program& program, int block) const {
  std::vector<std::string> counters;
  for (int t = 0; t <= trainers; ++t) {
    Var var = Persistable(t < trainers ? ToyCounter(t) : "steps", {1});
    var.type->dtype = DType::kInt64;
    if (t < trainers) counters.push_back(var.name);
    program.MutableBlock(0).SetVar(std::move(var));
  }
  program.MutableBlock(block).Append(Op("sum").AddInput("X", counters).AddOutput("Out", {"steps"}));
}

// Adds g + delay * g * g * (w - w_then), as the transpiler does; returns the variable of the result.
std::string ToyJob::CorrectForDelay(Program& program, int block, const ToyParam& param,
                                    const std::string& grad) const {
  std::vector<std::string> backups;
  for (int t = 0; t < trainers; ++t) {
    backups.push_back(ToyBackup(param.name, t));
    program.MutableBlock(0).SetVar(Persistable(backups.back(), param.shape));
  }
  Block& body = program.MutableBlock(block);
  const auto add = [&](Op op, const char* out) {
    const std::string name = param.name + out;
    body.SetVar(TensorVar(name, DType::kFp32, param.shape));
    body.Append(std::move(op.AddOutput("Out", {name})));
    return name;
  };
  const auto combine = [&](const char* op, const std::string& x, const std::string& y, const char* out) {
    return add(Op(op).AddInput("X", {x}).AddInput("Y", {y}), out);
  };
  body.SetVar(TensorVar("whose", DType::kInt64, {1}));
  const std::string then =
      add(Op("ref_by_trainer_id").AddInput("X", backups).AddInput("TrainerId", {"whose"}), "_then");
  const std::string moved = combine("elementwise_sub", param.name, then, "_moved");
  const std::string once = combine("elementwise_mul", moved, grad, "_once");
  const std::string twice = combine("elementwise_mul", once, grad, "_twice");
  body.Append(Op("scale").AddInput("X", {twice}).AddOutput("Out", {twice}).Set("scale", *delay));
  return combine("elementwise_add", grad, twice, "_corrected");
}

Program ToyJob::TrainerStartup(int trainer) const {
  Program program;
  Block& main = program.MutableBlock(0);
  for (const ToyParam& param : params) {
    main.SetVar(Persistable(param.name, param.shape));
    if (param.table) continue;
    const std::vector<std::string> server = {servers[static_cast<std::size_t>(param.server)]};
    if (param.start && trainer == 0) main.Append(Op("send").AddInput("X", {param.name}).Set("epmap", server));
    main.Append(Op("recv")
                    .AddOutput("Out", {param.name})
                    .Set("trainer_id", std::int32_t{trainer})
                    .Set("epmap", server));
  }
  main.Append(Op("fetch_barrier").Set("endpoints", servers).Set("trainer_id", std::int32_t{trainer}));
  return program;
}

// An asynchronous program receives after it has sent, and reports its step in between.
Program ToyJob::WithoutFetchBarrier(const Program& sending, int trainer) const {
  Program program = sending;
  Block& main = program.MutableBlock(0);
  if (lr_block) {
    Var var = Persistable(ToyCounter(trainer), {1});
    var.type->dtype = DType::kInt64;
    main.SetVar(std::move(var));
    main.Append(
        Op("send").AddInput("X", {ToyCounter(trainer)}).Set("epmap", servers).Set("use_send_handler", false));
  }
  const std::vector<OpEntry> ops = main.ops();
  for (const OpEntry& entry : ops) {
    if (entry.op->type() == "recv") main.Append(*entry.op);
    if (entry.op->type() == "recv" || entry.op->type() == "fetch_barrier") main.Remove(entry.id);
  }
  return program;
}

Program ToyJob::Trainer(int trainer) const {
  Program program = TrainerStartup(trainer);
  Block& main = program.MutableBlock(0);
  for (const ToyParam& param : params) {
    if (param.start) continue;
    if (param.table) {
      main.Append(
          Op("distributed_lookup_table")
              .AddInput("W", {param.name})
              .Set("table_names", std::vector<std::string>{param.name})
              .Set("height_sections", std::vector<std::int64_t>{param.shape[0]})
              .Set("endpoints", std::vector<std::string>{servers[static_cast<std::size_t>(param.server)]}));
    }
    main.SetVar(GradVar(param, GradName(param, trainer)));
    main.Append(Op("send")
                    .AddInput("X", {GradName(param, trainer)})
                    .Set("epmap", std::vector<std::string>{servers[static_cast<std::size_t>(param.server)]}));
  }
  WritePolicies(PoliciesOf({trainer}, -1), program.mutable_meta());
  if (async) return WithoutFetchBarrier(program, trainer);
  main.Append(Op("send_barrier").Set("endpoints", servers).Set("trainer_id", std::int32_t{trainer}));
  return program;
}

void ToyJob::Start(int server, Scope& scope) const {
  Fill(scope, "rate", {1}, [](std::size_t) { return 0.1f; });
  for (int t = 0; async && lr_block && t <= trainers; ++t) {
    Tensor& counter = scope.FindOrCreate(t < trainers ? ToyCounter(t) : "steps")->As<Tensor>();
    counter = Tensor(DType::kInt64, {1});
    counter.Span<std::int64_t>()[0] = 1;
  }
  for (const ToyParam& param : params) {
    if (param.server != server || param.start) continue;
    Fill(scope, param.name, param.shape,
         [&](std::size_t i) { return std::sin(static_cast<float>(i + param.name.size())); });
    for (const State& state : StatesOf(param))
      Fill(scope, state.name, state.shape, [&](std::size_t) { return state.first; });
    const auto first = scope.Find(param.name)->As<Tensor>().Span<float>();
    for (int t = 0; delay && t < trainers; ++t)
      Fill(scope, ToyBackup(param.name, t), param.shape, [&](std::size_t i) { return first[i]; });
  }
}

std::vector<float> ToyGradient(const std::vector<float>& param, const std::string& name, int trainer,
                               std::uint64_t step) {
  std::vector<float> gradient(param.size());
  const auto salt = static_cast<float>(Fnv1a64(name) % 97) * 0.01f;
  for (std::size_t i = 0; i < param.size(); ++i) {
    gradient[i] =
        0.3f * param[i] + std::cos(static_cast<float>(i) * 0.1f + static_cast<float>(trainer) * 1.7f +
                                   static_cast<float>(step) * 0.3f + salt);
  }
  return gradient;
}

std::vector<std::int64_t> ToyIds(const ToyParam& table, int trainer, std::uint64_t step) {
  const std::uint64_t salt = Fnv1a64(StrCat(table.name, " ", trainer, " ", step)) ^ Mixed(table.salt);
  const bool seldom = table.salt % 4 == 1 && salt % 16 < 10;
  std::vector<std::int64_t> ids(seldom ? 0 : salt % 5);
  for (std::size_t i = 0; i < ids.size(); ++i)
    ids[i] = static_cast<std::int64_t>((salt >> (8 * i)) % static_cast<std::uint64_t>(table.shape[0]));
  return ids;
}

std::vector<std::int64_t> ToyJob::IdsOf(const ToyParam& table, int trainer, std::uint64_t step) const {
  std::vector<std::int64_t> ids = ToyIds(table, trainer, step);
  if (async && ids.empty()) ids.push_back(trainer);
  return ids;
}

std::vector<float> ToyRows(const ToyParam& table, const std::vector<float>& values,
                           const std::vector<std::int64_t>& ids) {
  const Dim width = table.shape.RowWidth();
  std::vector<float> rows;
  for (const std::int64_t id : ids)
    rows.insert(rows.end(), values.begin() + id * width, values.begin() + (id + 1) * width);
  return rows;
}

std::vector<float> ToyStart(const ToyParam& param) {
  std::vector<float> values(static_cast<std::size_t>(param.shape.Count()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = std::cos(static_cast<float>(i + param.name.size()));
  return values;
}

// The received part of a compressed gradient, element by element; `left` is the residual.
void Carry(const Compression& how, std::vector<float>& gradient, std::vector<float>& left) {
  left.resize(gradient.size(), 0.0f);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    if (how.kind == Compression::Kind::kFp16) gradient[i] = FloatOf(HalfOf(gradient[i]));
    if (how.kind != Compression::Kind::kTwoBit) continue;
    left[i] += gradient[i];
    gradient[i] = left[i] >= how.threshold    ? how.threshold
                  : left[i] <= -how.threshold ? -how.threshold
                                              : 0.0f;
    left[i] -= gradient[i];
  }
}

std::vector<ToyValues> ToyReference(const ToyJob& job, int steps) {
  SimBlockRunner runner;
  std::map<std::string, std::vector<float>> left;  // by gradient
  std::vector<ToyValues> versions(static_cast<std::size_t>(steps) + 1);
  for (int s = 0; s < static_cast<int>(job.servers.size()); ++s) {
    const Program program = job.Pserver(s);
    Scope scope;
    job.Start(s, scope);
    for (const VarRef& var : program.main().vars()) scope.FindOrCreate(var->name);
    for (int step = 0; step <= steps; ++step) {
      for (const ToyParam& param : job.params) {
        if (param.server != s) continue;
        if (param.start) {
          versions[static_cast<std::size_t>(step)][param.name] = ToyStart(param);
          continue;
        }
        const auto values = scope.Find(param.name)->As<Tensor>().Span<float>();
        auto& now = versions[static_cast<std::size_t>(step)][param.name];
        now.assign(values.begin(), values.end());
        for (int t = 0; t < job.trainers; ++t) {
          if (param.table) {
            const auto ids = ToyIds(param, t, static_cast<std::uint64_t>(step));
            FillRows(scope, job.GradName(param, t), param, ids,
                     ToyGradient(ToyRows(param, now, ids), param.name, t, static_cast<std::uint64_t>(step)));
            continue;
          }
          std::vector<float> gradient = ToyGradient(now, param.name, t, static_cast<std::uint64_t>(step));
          Carry(param.compression, gradient, left[StrCat(param.name, " ", t)]);
          Fill(scope, job.GradName(param, t), param.shape, [&](std::size_t i) { return gradient[i]; });
        }
      }
      for (int block = 1; block < program.block_count() && step < steps; ++block) {
        PENSTOCK_CHECK(runner.RunBlock(program, block, scope).ok(), "the reference runs");
      }
    }
  }
  return versions;
}

}  // namespace penstock::test
