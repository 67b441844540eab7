// Only the plan decides how pieces are cut: a pserver that reads its program finds the same chunks.
#include <gtest/gtest.h>

#include <map>

#include "executor/protocol/contract.h"
#include "framework/text/parser.h"
#include "operators/all_ops.h"
#include "tests/support/training_program.h"
#include "transpiler/pipeline/transpile.h"
#include "transpiler/plan/names.h"

namespace penstock::test {
namespace {

// Compares the rows per chunk of each piece in the plan and on the servers.
std::map<std::string, Dim> ChunksOf(const TrainingProgram& source, int pservers,
                                    plan::Dialect dialect = plan::Dialect::kDefault) {
  plan::TranspileConfig config;
  config.trainers = 2;
  config.dialect = dialect;
  for (int i = 0; i < pservers; ++i) config.pservers.push_back(StrCat("a:", i + 1));
  const Result<RoleSet> roles = Transpile(AllOps(), source.main, source.startup, config);
  EXPECT_TRUE(roles.ok()) << roles.status().ToString();
  std::map<std::string, Dim> planned, served;
  for (const plan::ParamPlacement& param : roles->plan.params) {
    for (std::size_t i = 0; i < param.slices.size(); ++i)
      planned[plan::ParamPieceName(param, static_cast<int>(i))] = param.slices[i].chunk_rows;
  }
  for (const PserverPrograms& role : roles->pservers) {
    const Result<roles::PserverFacts> facts =
        protocol::ReadServer(AllOps(), role.main, *role.main.main().ops().back().op);
    EXPECT_TRUE(facts.ok()) << facts.status().ToString();
    if (!facts.ok()) continue;
    for (const roles::ServedParam& param : facts->params)
      served[param.param.name] = param.chunk_rows.value_or(-1);
  }
  EXPECT_EQ(planned, served);
  return served;
}

TEST(PlanChunks, PserversCutSlicesAsPlanned) {
  const std::map<std::string, Dim> chunks =
      ChunksOf(MakeTrainingProgram({{4000, 300}, {10, 3}, {7}, {2, 600000}}), 2);
  EXPECT_EQ(chunks.at("w0000.block0"), (1 << 20) / 1200);
  EXPECT_EQ(chunks.at("w0001"), 10);
}

// A regularizer that reads the parameter's norm needs the whole parameter, whatever the optimizer is.
TEST(PlanChunks, WholeParameterUpdatesHaveOneChunk) {
  const auto program = [](std::string_view text) { return ParseText(text, "test").value(); };
  const TrainingProgram source = {program(R"(program
block 0 {
  data x : f32[?, 1]
  param w : f32[4000, 300]
  persist lr : f32[1]
  var w@GRAD : f32[4000, 300]
  var t : f32[4000, 300]
  var g : f32[4000, 300]
  w@GRAD = scale(X=w) @backward(w, w@GRAD)
  t = clip_by_norm(X=w) {max_norm=1.0} @optimize(w, w@GRAD)
  g = sum(X=[w@GRAD, t]) @optimize(w, w@GRAD)
  (ParamOut=w) = sgd(Param=w, Grad=g, LearningRate=lr) @optimize(w, w@GRAD)
}
)"),
                                  program(R"(program
block 0 {
  param w : f32[4000, 300]
  persist lr : f32[1]
  lr = fill_constant() {dtype=5, shape=[1l], value=0.1}
  w = fill_constant() {dtype=5, shape=[4000l, 300l], value=0.5}
}
)")};
  EXPECT_EQ(ChunksOf(source, 1).at("w"), 4000);
  EXPECT_EQ(ChunksOf(source, 1, plan::Dialect::kFluid18).at("w"), 4000);
}

}  // namespace
}  // namespace penstock::test
