// Backup trainers as processes: a slow trainer delays no other process, and its late gradients are dropped
// and counted.
#include <gtest/gtest.h>

#include "framework/text/parser.h"
#include "operators/all_ops.h"
#include "tests/dist/job.h"
#include "tests/support/role_programs.h"
#include "transpiler/pipeline/transpile.h"

namespace penstock::test {
namespace {

using std::chrono::seconds;

// The gradient of w is x / 4 for all columns, and every number is exact.
constexpr char kMain[] = R"(program
block 0 {
  data x : f32[?, 2]
  persist lr : f32[1]
  param w : f32[2, 4]
  y : f32[?, 4] = mul(X=x, Y=w)
  loss : f32[1] = mean(X=y) @forward|loss
  loss@GRAD : f32[1] = fill_constant() {shape=[1l], value=1.0, dtype=5} @backward|loss
  (X@GRAD=y@GRAD : f32[?, 4]) = mean_grad(X=y, Out@GRAD=loss@GRAD) @backward
  (X@GRAD=[], Y@GRAD=w@GRAD : f32[2, 4]) = mul_grad(X=x, Y=w, Out@GRAD=y@GRAD) @backward(w, w@GRAD)
  (ParamOut=w) = sgd(Param=w, Grad=w@GRAD, LearningRate=lr) @optimize(w, w@GRAD)
}
)";

constexpr char kStartup[] = R"(program
block 0 {
  persist lr : f32[1]
  param w : f32[2, 4]
  lr = fill_constant() {shape=[1l], value=0.5, dtype=5}
  w = fill_constant() {shape=[2l, 4l], value=1.0, dtype=5}
}
)";

constexpr int kSteps = 4;

Tensor Batch(float a, float b) {
  Tensor x(DType::kFp32, {1, 2});
  x.Span<float>()[0] = a;
  x.Span<float>()[1] = b;
  return x;
}

TEST(BackupTrainers, SlowTrainersDelayNoStepAndLateStepsAreCounted) {
  plan::TranspileConfig config;
  config.trainers = 3;
  config.trainer_ids = {0, 1, 2};
  config.pservers = {"127.0.0.1:7000"};
  config.backup_trainers = 1;
  const Result<RoleSet> roles =
      Transpile(AllOps(), ParseText(kMain, "main").value(), ParseText(kStartup, "startup").value(), config);
  ASSERT_TRUE(roles.ok()) << roles.status().ToString();
  Job job(TrainersOf(*roles), PserversOf(*roles));
  const std::vector<std::pair<float, float>> batches = {{1, 2}, {3, -4}, {64, 64}};
  for (int t = 0; t < 3; ++t) {
    const auto [a, b] = batches[static_cast<std::size_t>(t)];
    job.trainer(t).feeds.assign(kSteps, {{"x", Batch(a, b)}});
  }
  Process& pserver = job.StartPserver(0);
  Process& slow = job.StartTrainer(2, {"--step_delay_ms=3000"});
  Process* const quick[] = {&job.StartTrainer(0), &job.StartTrainer(1)};
  for (Process* const trainer : quick) {
    ASSERT_EQ(trainer->Wait(seconds(60)), 0) << job.Logs();
  }
  EXPECT_FALSE(slow.Wait(seconds(0)).has_value()) << "the others have waited for it\n" << job.Logs();
  ASSERT_EQ(slow.Wait(seconds(60)), 0) << job.Logs();
  ASSERT_EQ(pserver.Wait(seconds(30)), 0) << job.Logs();
  EXPECT_NE(pserver.Log().find("dropped the gradients of steps that came late: 4 of trainer 2"),
            std::string::npos)
      << job.Logs();
  // The mean of the quick ones' gradients, every step.
  const Arrays served = job.Served(0);
  const float* const w = served.at("w").Span<float>().data();
  for (int column = 0; column < 4; ++column) {
    EXPECT_EQ(w[column], 1 - kSteps * 0.5f * ((1.0f + 3.0f) / 2 / 4));
    EXPECT_EQ(w[4 + column], 1 - kSteps * 0.5f * ((2.0f - 4.0f) / 2 / 4));
  }
  const Arrays late = job.Final(2);
  EXPECT_EQ(late.at("w").Span<float>()[0], w[0]) << "its last pull got the newest version";
}

}  // namespace
}  // namespace penstock::test
