// Frozen parameters and running statistics in a job of processes: all trainers get trainer 0's values.
#include <gtest/gtest.h>

#include <cstring>

#include "framework/text/parser.h"
#include "operators/all_ops.h"
#include "tests/dist/job.h"
#include "tests/support/op_harness.h"
#include "tests/support/role_programs.h"
#include "tests/support/run_program.h"
#include "transpiler/pipeline/transpile.h"

namespace penstock::test {
namespace {

// y = (x + frozen) w; each process draws different random initial values for frozen and mean.
constexpr char kMain[] = R"(program
block 0 {
  data x : f32[?, 6]
  persist lr : f32[1]
  param w : f32[6, 5]
  param frozen : f32[6]
  param mean : f32[6]
  h : f32[?, 6] = elementwise_add(X=x, Y=frozen) {axis=1}
  y : f32[?, 5] = mul(X=h, Y=w)
  mean = scale(X=mean) {scale=0.5}
  loss : f32[1] = mean(X=y) @forward|loss
  loss@GRAD : f32[1] = fill_constant() {shape=[1l], value=1.0, dtype=5} @backward|loss
  (X@GRAD=y@GRAD : f32[?, 5]) = mean_grad(X=y, Out@GRAD=loss@GRAD) @backward
  (X@GRAD=[], Y@GRAD=w@GRAD : f32[6, 5]) = mul_grad(X=h, Y=w, Out@GRAD=y@GRAD) @backward(w, w@GRAD)
  (ParamOut=w) = sgd(Param=w, Grad=w@GRAD, LearningRate=lr) @optimize(w, w@GRAD)
}
)";

constexpr char kStartup[] = R"(program
block 0 {
  persist lr : f32[1]
  param w : f32[6, 5]
  param frozen : f32[6]
  param mean : f32[6]
  lr = fill_constant() {shape=[1l], value=0.1, dtype=5}
  w = uniform_random() {shape=[6l, 5l], seed=7}
  frozen = gaussian_random() {shape=[6l]}
  mean = uniform_random() {shape=[6l]}
}
)";

plan::TranspileConfig JobConfig() {
  plan::TranspileConfig config;
  config.trainers = 2;
  config.trainer_ids = {0, 1};
  // Two pservers hold a slice of w and one start value each; the last holds nothing.
  for (int i = 0; i < 5; ++i) config.pservers.push_back(StrCat("127.0.0.1:", 7000 + i));
  config.min_block_size = 15;
  config.allow_small_blocks = true;
  return config;
}

TEST(DistStartValues, EveryTrainerReceivesTheValuesOfTrainer0) {
  const Result<RoleSet> roles = Transpile(AllOps(), ParseText(kMain, "main").value(),
                                          ParseText(kStartup, "startup").value(), JobConfig());
  ASSERT_TRUE(roles.ok()) << roles.status().ToString();
  ASSERT_EQ(roles->plan.start_values.size(), 2u);
  EXPECT_EQ(roles->plan.start_values[0].pserver, 2);
  EXPECT_EQ(roles->plan.start_values[1].pserver, 3);
  // Records the values that trainer 0's startup program draws, before it receives any.
  Program first = roles->trainers[0].startup;
  Block& block = first.MutableBlock(0);
  for (int i = 0; i < static_cast<int>(block.ops().size()); ++i) {
    if (block.ops()[static_cast<std::size_t>(i)].op->type() != "send") continue;
    Var drawn = TensorVar("drawn", DType::kFp32, {6});
    drawn.persistable = true;
    block.SetVar(drawn);
    block.Insert(i, Op("assign").AddInput("X", {"frozen"}).AddOutput("Out", {"drawn"}));
    break;
  }
  Job job({{first, roles->trainers[0].main}, {roles->trainers[1].startup, roles->trainers[1].main}},
          PserversOf(*roles));
  constexpr int kSteps = 3;
  for (int i = 0; i < 2; ++i) {
    for (int step = 0; step < kSteps; ++step) {
      job.trainer(i).feeds.push_back(
          {{"x", Scattered(DType::kFp32, {4, 6}, -1, 1, static_cast<unsigned>(i + 1))}});
    }
  }
  job.fetches = {"loss"};
  for (const std::uint64_t seed : {0, 5, 6}) {
    ASSERT_TRUE(job.Run(std::chrono::seconds(60), seed)) << job.Logs();
    const Arrays a = job.Final(0), b = job.Final(1);
    for (const char* name : {"w", "frozen", "mean"}) {
      EXPECT_EQ(std::memcmp(a.at(name).raw(), b.at(name).raw(), a.at(name).bytes()), 0) << name;
    }
    EXPECT_EQ(std::memcmp(a.at("frozen").raw(), a.at("drawn").raw(), a.at("drawn").bytes()), 0);
    EXPECT_NE(a.at("frozen").Span<float>()[0], 0.0f);
  }
}

}  // namespace
}  // namespace penstock::test
