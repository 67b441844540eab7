// A table whose rows are updated one by one gets the bytes that its optimize block makes on columns.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "executor/protocol/contract.h"
#include "executor/pserver/memory/chunk_store.h"
#include "executor/schedule/executor.h"
#include "framework/text/parser.h"
#include "operators/all_ops.h"
#include "transpiler/pipeline/transpile.h"

namespace penstock::test {
namespace {

constexpr Dim kWidth = 19;  // whole vectors, and a rest

struct Optimizer {
  const char* name;
  const char* ops;
  bool by_row = true;
};

constexpr char kAdam[] = R"((ParamOut=t, Moment1Out=m, Moment2Out=v, Beta1PowOut=p1, Beta2PowOut=p2) = adam(
      Param=t, Grad=t@GRAD, LearningRate=lr, Moment1=m, Moment2=v, Beta1Pow=p1, Beta2Pow=p2) )";

const std::vector<Optimizer>& Optimizers() {
  static const std::string adam = kAdam;
  static const std::string lazy = adam + "{lazy_mode=true, epsilon=0.01}", whole = adam + "{beta1=0.8}";
  static const std::vector<Optimizer> optimizers = {
      {"sgd", "(ParamOut=t) = sgd(Param=t, Grad=t@GRAD, LearningRate=lr)"},
      {"adagrad",
       "(ParamOut=t, MomentOut=v) = adagrad(Param=t, Grad=t@GRAD, LearningRate=lr, Moment=v) "
       "{epsilon=0.001}"},
      {"lazy adam", lazy.c_str()},
      {"adam", whole.c_str(), false},
      {"decayed adagrad",
       "(ParamOut=t, MomentOut=v) = decayed_adagrad(Param=t, Grad=t@GRAD, LearningRate=lr, Moment=v)",
       false}};
  return optimizers;
}

std::string Typed(std::string text, const std::string& type) {
  for (std::size_t at = 0; (at = text.find("f32", at)) != std::string::npos; ++at) text.replace(at, 3, type);
  return text;
}

Program Parsed(const std::string& ops, const std::string& type) {
  constexpr char kDeclared[] = R"(
  persist lr : f32[1]
  persist m : f32[100, 19]
  persist v : f32[100, 19]
  persist p1 : f32[1]
  persist p2 : f32[1]
  param t : f32[100, 19] distributed
)";
  Result<Program> program =
      ParseText(Typed(StrCat("program\nblock 0 {", kDeclared, ops, "}\n"), type), "table_updates_test");
  PENSTOCK_CHECK(program.ok(), program.status().ToString());
  return *std::move(program);
}

RoleSet RolesOf(const Optimizer& optimizer, const std::string& type, int trainers) {
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
  p1 = fill_constant() {shape=[1l], value=0.9, dtype=DTYPE}
  p2 = fill_constant() {shape=[1l], value=0.999, dtype=DTYPE}
)";
  const auto with_type = [&](std::string text) {
    for (std::size_t at; (at = text.find("DTYPE")) != std::string::npos;)
      text.replace(at, 5, type == "f32" ? "5" : "6");
    return text;
  };
  plan::TranspileConfig config;
  config.trainers = trainers;
  config.trainer_ids.clear();
  for (int trainer = 0; trainer < trainers; ++trainer) config.trainer_ids.push_back(trainer);
  config.pservers = {"a:1"};
  Result<RoleSet> roles =
      Transpile(AllOps(), Parsed(StrCat(with_type(kForward), optimizer.ops, " @optimize(t, t@GRAD)\n"), type),
                Parsed(with_type(kStartup), type), config);
  PENSTOCK_CHECK(roles.ok(), roles.status().ToString());
  return *std::move(roles);
}

struct Gradient {
  std::vector<std::int64_t> ids;
  std::string values;
};

// Few ids, some several times; negative zeros too, of which a sum of one addend is not the same as itself.
template <typename T>
Gradient Draw(std::mt19937_64& random) {
  Gradient gradient;
  gradient.ids.resize(random() % 12);
  for (std::int64_t& id : gradient.ids) id = static_cast<std::int64_t>(random() % 9) - 4;
  std::vector<T> values(gradient.ids.size() * kWidth);
  for (T& value : values)
    value = random() % 16 == 0 ? T{-0.0} : static_cast<T>(static_cast<double>(random() % 2001) / 997 - 1);
  gradient.values.assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  return gradient;
}

std::string TextOf(const std::vector<std::int64_t>& ids) {
  return {reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(std::int64_t)};
}

// A server's variables after some steps, as bytes, by name.
template <typename T>
std::map<std::string, std::string> Trained(const RoleSet& roles, int trainers, bool by_row) {
  exec::Executor executor(AllOps(), {.threads = 1});
  Scope scope;
  EXPECT_TRUE(executor.Run(roles.pservers[0].startup, scope, {}, {}).ok());
  const Program& program = roles.pservers[0].main;
  roles::PserverFacts facts =
      protocol::ReadServer(AllOps(), program, *program.main().ops().back().op).value();
  if (!by_row) facts.params[0].row_optimizer.reset();
  const auto store = pserver::ChunkStore::Make(program, facts, scope).value();
  std::map<std::string, std::string> bytes;
  std::mt19937_64 random(7);
  for (std::uint64_t step = 0; step < 20; ++step) {
    for (int trainer = 0; trainer < trainers; ++trainer) {
      const Gradient gradient = Draw<T>(random);
      const Payload ids = Payload::Of(TextOf(gradient.ids)), values = Payload::Of(gradient.values);
      EXPECT_TRUE(store
                      ->Merge({.param = 0,
                               .chunk = 0,
                               .trainer = trainer,
                               .step = step,
                               .parts = {ids, values},
                               .rows = gradient.ids.size()})
                      .ok());
    }
    const Status ran = store->Run({.param = 0, .chunk = 0, .step = step}, executor);
    EXPECT_TRUE(ran.ok()) << ran.ToString();
    const Tensor rows =
        store->Gather({.param = 0, .ids = pserver::RowIds::Of(Payload::Of(TextOf({-4, 50, 0, 3, -4})))});
    bytes["read"] += std::string(reinterpret_cast<const char*>(rows.raw()), rows.bytes());
  }
  store->PublishTables();
  for (const char* name : {"t", "m", "v", "p1", "p2"}) {
    const Variable* variable = scope.Find(name);
    if (variable == nullptr) continue;
    const auto* rows = variable->If<SelectedRows>();
    const Tensor& value = rows == nullptr ? *variable->If<Tensor>() : rows->value;
    bytes[name] = std::string(reinterpret_cast<const char*>(value.raw()), value.bytes());
    if (rows != nullptr) bytes[name] += TextOf(rows->rows);
  }
  return bytes;
}

template <typename T>
void ExpectSameBytes(const char* type) {
  for (const Optimizer& optimizer : Optimizers()) {
    for (const int trainers : {1, 3}) {
      SCOPED_TRACE(StrCat(optimizer.name, " of ", type, ", ", trainers, " trainers"));
      const RoleSet roles = RolesOf(optimizer, type, trainers);
      EXPECT_EQ(Trained<T>(roles, trainers, true), Trained<T>(roles, trainers, false));
    }
  }
}

TEST(TableUpdates, RowByRowGivesTheBytesOfColumns) { ExpectSameBytes<float>("f32"); }
TEST(TableUpdates, RowByRowGivesTheBytesOfColumnsInDoublePrecision) { ExpectSameBytes<double>("f64"); }

// What the test above compares: some optimizers have rules, others none.
TEST(TableUpdates, OptimizersThatChangeOnlyTheGradientsRowsAreFound) {
  for (const Optimizer& optimizer : Optimizers()) {
    const RoleSet roles = RolesOf(optimizer, "f32", 2);
    const Program& program = roles.pservers[0].main;
    const roles::PserverFacts facts =
        protocol::ReadServer(AllOps(), program, *program.main().ops().back().op).value();
    EXPECT_EQ(facts.params[0].row_optimizer.has_value(), optimizer.by_row) << optimizer.name;
  }
}

// The error of a rate without a value tells who does the update: the store, or the runner of the block.
TEST(TableUpdates, RowsAreUpdatedWithoutTheBlock) {
  for (const Optimizer& optimizer : Optimizers()) {
    const RoleSet roles = RolesOf(optimizer, "f32", 2);
    exec::Executor executor(AllOps(), {.threads = 1});
    Scope scope;
    ASSERT_TRUE(executor.Run(roles.pservers[0].startup, scope, {}, {}).ok());
    const Program& program = roles.pservers[0].main;
    const roles::PserverFacts facts =
        protocol::ReadServer(AllOps(), program, *program.main().ops().back().op).value();
    const auto store = pserver::ChunkStore::Make(program, facts, scope).value();
    scope.Find("lr")->Clear();
    const Status ran = store->Run({.param = 0, .chunk = 0, .step = 0}, executor);
    EXPECT_EQ(ran.id(), optimizer.by_row ? "E-server-startup" : "E-run-uninitialized") << optimizer.name;
  }
}

}  // namespace
}  // namespace penstock::test
