// A server with a table whose rows are updated one by one, or by its optimize block on columns.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "executor/protocol/contract.h"
#include "executor/protocol/row_shards.h"
#include "executor/pserver/memory/chunk_store.h"
#include "executor/schedule/executor.h"
#include "framework/text/parser.h"
#include "operators/all_ops.h"
#include "transpiler/pipeline/transpile.h"

namespace penstock::test {

constexpr Dim kWidth = 19;  // whole vectors, and a rest

struct Optimizer {
  std::string name;
  std::string ops;     // that update t by t@GRAD
  bool by_row = true;  // it has a rule for rows
  bool moves = false;  // it changes rows that a gradient does not list
  bool exact = false;  // such rows get the bytes of the block, too
};

inline std::string Typed(std::string text, const std::string& type) {
  for (std::size_t at = 0; (at = text.find("f32", at)) != std::string::npos; ++at) text.replace(at, 3, type);
  return text;
}

inline Program Parsed(const std::string& ops, const std::string& type) {
  constexpr char kDeclared[] = R"(
  persist lr : f32[1]
  persist m : f32[100, 19]
  persist v : f32[100, 19]
  persist u : f32[100, 19]
  persist p1 : f32[1]
  persist p2 : f32[1]
  param t : f32[100, 19] distributed
)";
  Result<Program> program =
      ParseText(Typed(StrCat("program\nblock 0 {", kDeclared, ops, "}\n"), type), "table_updates_test");
  PENSTOCK_CHECK(program.ok(), program.status().ToString());
  return *std::move(program);
}

// `policy`: of the table's rows.
inline RoleSet RolesOf(const Optimizer& optimizer, const std::string& type, int trainers,
                       const std::string& policy = "") {
  constexpr char kForward[] = R"(
  data i : i64[?, 1]
  a : f32[?, 19] = lookup_table(W=t, Ids=i) {is_distributed=true, is_sparse=true}
  loss : f32[1] = mean(X=a) @forward|loss
  loss@GRAD : f32[1] = fill_constant() {shape=[1l], value=1.0, dtype=DTYPE} @backward|loss
  (X@GRAD=a@GRAD : f32[?, 19]) = mean_grad(X=a, Out@GRAD=loss@GRAD) @backward
  (W@GRAD=t@GRAD : rows<f32[100, 19]>) = lookup_table_grad(
      W=t, Ids=i, Out@GRAD=a@GRAD) {is_distributed=true, is_sparse=true} @backward(t, t@GRAD)
  )";
  constexpr char kStartup[] = R"(
  lr = fill_constant() {shape=[1l], value=0.3, dtype=DTYPE}
  t = uniform_random() {shape=[100l, 19l], min=-1.0, max=1.0, seed=5, dtype=DTYPE}
  m = fill_constant() {shape=[100l, 19l], value=0.0, dtype=DTYPE}
  v = fill_constant() {shape=[100l, 19l], value=0.25, dtype=DTYPE}
  u = fill_constant() {shape=[100l, 19l], value=0.0, dtype=DTYPE}
  p1 = fill_constant() {shape=[1l], value=0.9, dtype=DTYPE}
  p2 = fill_constant() {shape=[1l], value=0.999, dtype=DTYPE}
)";
  const auto with_type = [&](std::string text) {
    for (std::size_t at; (at = text.find("DTYPE")) != std::string::npos;)
      text.replace(at, 5, type == "f32" ? "5" : "6");
    const std::string_view sparse = "is_sparse=true";
    for (std::size_t at = 0; !policy.empty() && (at = text.find(sparse, at)) != std::string::npos;) {
      at += sparse.size();
      text.insert(at, StrCat(", row_policy=\"", policy, "\""));
    }
    return text;
  };
  plan::TranspileConfig config;
  config.trainers = trainers;
  config.trainer_ids.clear();
  for (int trainer = 0; trainer < trainers; ++trainer) config.trainer_ids.push_back(trainer);
  config.pservers = {"a:1"};
  Result<RoleSet> roles = Transpile(AllOps(), Parsed(StrCat(with_type(kForward), optimizer.ops), type),
                                    Parsed(with_type(kStartup), type), config);
  PENSTOCK_CHECK(roles.ok(), roles.status().ToString());
  return *std::move(roles);
}

struct RowGradient {
  std::vector<std::int64_t> ids;
  std::string values;
};

inline std::string TextOf(const std::vector<std::int64_t>& ids) {
  return {reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(std::int64_t)};
}

inline std::string BytesOf(const Tensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.raw()), tensor.bytes()};
}

class TableServer {
 public:
  // `shards`: of the table, if it can have several.
  TableServer(const RoleSet& roles, bool by_row, int shards = 1)
      : program_(roles.pservers[0].main), shards_{.exactly = shards} {
    EXPECT_TRUE(executor_.Run(roles.pservers[0].startup, scope_, {}, {}).ok());
    facts_ = protocol::ReadServer(AllOps(), program_, *program_.main().ops().back().op).value();
    if (!by_row) facts_.params[0].row_optimizer.reset();
  }
  Scope& scope() { return scope_; }
  const Program& program() const { return program_; }
  const roles::PserverFacts& facts() const { return facts_; }
  // Made when it is first used, so that the scope may be changed before.
  pserver::ChunkStore& store() {
    if (store_ == nullptr) {
      EXPECT_TRUE(Make().ok());
    }
    return *store_;
  }
  Status Make() {
    PENSTOCK_ASSIGN_OR_RETURN(
        store_, pserver::ChunkStore::Make(program_, facts_, scope_, {}, kMaxBodyBytes, shards_));
    return OkStatus();
  }
  int shards() { return static_cast<int>(store().chunk_count(0)); }
  // One gradient of each trainer.
  void Step(const std::vector<RowGradient>& gradients) {
    for (std::size_t trainer = 0; trainer < gradients.size(); ++trainer) {
      for (int shard = 0; shard < shards(); ++shard) {
        const RowGradient gradient = OfShard(gradients[trainer], shard);
        const Payload ids = Payload::Of(TextOf(gradient.ids)), values = Payload::Of(gradient.values);
        EXPECT_TRUE(store()
                        .Merge({.param = 0,
                                .chunk = shard,
                                .trainer = static_cast<int>(trainer),
                                .step = step_,
                                .parts = {ids, values},
                                .rows = gradient.ids.size()})
                        .ok());
      }
    }
    const Status ran = Run();
    EXPECT_TRUE(ran.ok()) << ran.ToString();
  }
  Status Run() {
    Status first;
    for (int shard = shards(); shard-- > 0;) {  // their order does not matter
      Status ran = store().Run({.param = 0, .chunk = shard, .step = step_}, executor_);
      if (!ran.ok()) first = std::move(ran);
    }
    ++step_;
    return first;
  }
  Tensor Read(const std::vector<std::int64_t>& ids) { return Read(ids, step_, -1); }
  Tensor Read(const std::vector<std::int64_t>& ids, std::uint64_t version, std::int64_t padding) {
    Tensor all;
    for (int shard = 0; shard < shards(); ++shard) {
      const std::vector<std::size_t> places = PlacesOf(ids, shard);
      std::vector<std::int64_t> asked;
      for (const std::size_t place : places) asked.push_back(ids[place]);
      const Tensor rows = store()
                              .Gather({.param = 0,
                                       .chunk = shard,
                                       .version = version,
                                       .padding = padding,
                                       .ids = pserver::RowIds::Of(Payload::Of(TextOf(asked)))})
                              .value();
      if (shards() == 1) return rows;
      if (shard == 0) all = Tensor(rows.dtype(), rows.shape().WithRows(static_cast<Dim>(ids.size())));
      for (std::size_t i = 0; i < places.size(); ++i) {
        const auto to = static_cast<Dim>(places[i]), from = static_cast<Dim>(i);
        all.Rows(to, to + 1).CopyFrom(rows.Rows(from, from + 1));
      }
    }
    return all;
  }
  pserver::TableCopy Copied() {
    std::vector<pserver::TableCopy> copies;
    for (int shard = 0; shard < shards(); ++shard) copies.push_back(store().CopyTable(0, shard));
    return pserver::JoinShards(std::move(copies));
  }
  // The variables as bytes, by name.
  std::map<std::string, std::string> Published() {
    EXPECT_TRUE(store().PublishTables().ok());
    std::map<std::string, std::string> bytes;
    for (const char* name : {"t", "m", "v", "u", "p1", "p2"}) {
      const Variable* variable = scope_.Find(name);
      if (variable == nullptr) continue;
      const auto* rows = variable->If<SelectedRows>();
      bytes[name] = BytesOf(rows == nullptr ? *variable->If<Tensor>() : rows->value);
      if (rows != nullptr) bytes[name] += TextOf(rows->rows);
    }
    return bytes;
  }

 private:
  std::vector<std::size_t> PlacesOf(const std::vector<std::int64_t>& ids, int shard) {
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const auto shards = static_cast<std::uint32_t>(this->shards());
      if (protocol::ShardOf(ids[i], shards) == static_cast<std::uint32_t>(shard)) places.push_back(i);
    }
    return places;
  }
  RowGradient OfShard(const RowGradient& gradient, int shard) {
    RowGradient of_shard;
    const std::size_t row = gradient.ids.empty() ? 0 : gradient.values.size() / gradient.ids.size();
    for (const std::size_t place : PlacesOf(gradient.ids, shard)) {
      of_shard.ids.push_back(gradient.ids[place]);
      of_shard.values += gradient.values.substr(place * row, row);
    }
    return of_shard;
  }

  const Program program_;
  const pserver::TableShards shards_;
  exec::Executor executor_{AllOps(), {.threads = 1}};
  Scope scope_;
  roles::PserverFacts facts_;
  std::unique_ptr<pserver::ChunkStore> store_;
  std::uint64_t step_ = 0;
};

inline std::vector<Optimizer> TableOptimizers() {
  static const std::string of = "(Param=t, Grad=t@GRAD, LearningRate=lr, ", end = " @optimize(t, t@GRAD)\n";
  const auto adam = [](const std::string& attributes) {
    return StrCat("(ParamOut=t, Moment1Out=m, Moment2Out=v, Beta1PowOut=p1, Beta2PowOut=p2) = adam", of,
                  "Moment1=m, Moment2=v, Beta1Pow=p1, Beta2Pow=p2) ", attributes, end);
  };
  const auto adamax = [](const std::string& attributes) {
    return StrCat("(ParamOut=t, MomentOut=m, InfNormOut=v) = adamax", of,
                  "Moment=m, InfNorm=v, Beta1Pow=p1) ", attributes, end, "p1 = scale(X=p1) {scale=0.9}", end);
  };
  const auto momentum = [](const std::string& attributes) {
    return StrCat("(ParamOut=t, VelocityOut=m) = momentum", of, "Velocity=m) ", attributes, end);
  };
  const auto rmsprop = [](const std::string& attributes) {
    return StrCat("(ParamOut=t, MomentOut=m, MeanSquareOut=v, MeanGradOut=u) = rmsprop", of,
                  "Moment=m, MeanSquare=v, MeanGrad=u) ", attributes, end);
  };
  const auto ftrl = [](const std::string& attributes) {
    return StrCat("(ParamOut=t, SquaredAccumOut=v, LinearAccumOut=m) = ftrl", of,
                  "SquaredAccumulator=v, LinearAccumulator=m) ", attributes, end);
  };
  return {
      {"sgd", StrCat("(ParamOut=t) = sgd(Param=t, Grad=t@GRAD, LearningRate=lr)", end)},
      {"adagrad", StrCat("(ParamOut=t, MomentOut=v) = adagrad", of, "Moment=v) {epsilon=0.001}", end)},
      {"lazy adam", adam("{lazy_mode=true, epsilon=0.01}")},
      {.name = "adam", .ops = adam(""), .moves = true},
      {.name = "adam, other betas", .ops = adam("{beta1=0.8, beta2=0.99}"), .moves = true},
      {.name = "adam, large epsilon", .ops = adam("{epsilon=0.3}"), .moves = true},
      {.name = "adam without a series", .ops = adam("{beta2=0.9, epsilon=0.3}"), .moves = true},
      {.name = "adam without an end", .ops = adam("{beta1=0.999}"), .by_row = false},
      {.name = "adamax", .ops = adamax(""), .moves = true},
      {.name = "adamax, large epsilon", .ops = adamax("{epsilon=0.01}"), .moves = true},
      {.name = "momentum", .ops = momentum("{mu=0.9}"), .moves = true},
      {.name = "nesterov", .ops = momentum("{mu=0.95, use_nesterov=true}"), .moves = true},
      {.name = "momentum without an end", .ops = momentum("{mu=1.0}"), .by_row = false},
      {.name = "rmsprop", .ops = rmsprop("{momentum=0.9}"), .moves = true},
      {.name = "centered rmsprop", .ops = rmsprop("{centered=true, momentum=0.5}"), .moves = true},
      {.name = "decayed adagrad",
       .ops = StrCat("(ParamOut=t, MomentOut=v) = decayed_adagrad", of, "Moment=v)", end),
       .moves = true},
      {.name = "adadelta",
       .ops = StrCat("(ParamOut=t, AvgSquaredGradOut=v, AvgSquaredUpdateOut=u) = adadelta(Param=t, "
                     "Grad=t@GRAD, AvgSquaredGrad=v, AvgSquaredUpdate=u)",
                     end),
       .moves = true},
      {.name = "ftrl", .ops = ftrl("{l1=0.01, l2=0.1}"), .moves = true, .exact = true},
      {.name = "ftrl, another power", .ops = ftrl("{l1=0.01, lr_power=-0.4}"), .moves = true, .exact = true}};
}

}  // namespace penstock::test
