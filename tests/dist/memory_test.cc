// A server that runs out of memory after it was ready ends its job with an error: no signal, and everybody is
// told.
#include <gtest/gtest.h>

#include "framework/text/parser.h"
#include "operators/all_ops.h"
#include "tests/dist/job.h"
#include "tests/support/op_harness.h"
#include "tests/support/role_programs.h"
#include "transpiler/pipeline/transpile.h"

namespace penstock::test {
namespace {

using std::chrono::seconds;

// A parameter of 4 MB.
constexpr char kMain[] = R"(program
block 0 {
  data x : f32[?, 1024]
  persist lr : f32[1]
  param w : f32[1024, 1024]
  y : f32[?, 1024] = mul(X=x, Y=w)
  loss : f32[1] = mean(X=y) @forward|loss
  loss@GRAD : f32[1] = fill_constant() {shape=[1l], value=1.0, dtype=5} @backward|loss
  (X@GRAD=y@GRAD : f32[?, 1024]) = mean_grad(X=y, Out@GRAD=loss@GRAD) @backward
  (X@GRAD=[], Y@GRAD=w@GRAD : f32[1024, 1024]) = mul_grad(X=x, Y=w, Out@GRAD=y@GRAD) @backward(w, w@GRAD)
  (ParamOut=w) = sgd(Param=w, Grad=w@GRAD, LearningRate=lr) @optimize(w, w@GRAD)
}
)";

constexpr char kStartup[] = R"(program
block 0 {
  persist lr : f32[1]
  param w : f32[1024, 1024]
  lr = fill_constant() {shape=[1l], value=0.1, dtype=5}
  w = uniform_random() {shape=[1024l, 1024l], seed=7}
}
)";

std::unique_ptr<Job> LargeJob() {
  plan::TranspileConfig config;
  config.trainers = 2;
  config.trainer_ids = {0, 1};
  config.pservers = {"127.0.0.1:7000"};
  const Result<RoleSet> roles =
      Transpile(AllOps(), ParseText(kMain, "main").value(), ParseText(kStartup, "startup").value(), config);
  EXPECT_TRUE(roles.ok()) << roles.status().ToString();
  auto job = std::make_unique<Job>(TrainersOf(*roles), PserversOf(*roles));
  for (int i = 0; i < 2; ++i) {
    for (int step = 0; step < 3; ++step)
      job->trainer(i).feeds.push_back({{"x", Scattered(DType::kFp32, {4, 1024}, -1, 1, 1)}});
  }
  return job;
}

constexpr char kTold[] = "E-run-memory";

// What a job in which the server has so little memory may end in: it was enough after all, or the server and
// both trainers say that it was not.
void ExpectErrorOrSuccess(const std::string& flag) {
  SCOPED_TRACE(flag);
  const auto job = LargeJob();
  Process& pserver = job->StartPserver(0, {flag});
  Process* const trainers[] = {&job->StartTrainer(0), &job->StartTrainer(1)};
  const std::optional<int> code = pserver.Wait(seconds(30));
  ASSERT_TRUE(code.has_value()) << job->Logs();
  const bool enough = *code == 0;
  EXPECT_TRUE(enough || *code == 1) << job->Logs();
  EXPECT_EQ(pserver.Log().find(kTold) == std::string::npos, enough) << job->Logs();
  if (pserver.Log().find("is ready") == std::string::npos) return;  // nobody to tell the trainers
  for (Process* const trainer : trainers) {
    const std::optional<int> ended = trainer->Wait(seconds(30));
    ASSERT_TRUE(ended.has_value()) << job->Logs();
    EXPECT_EQ(*ended, enough ? 0 : 1) << job->Logs();
    EXPECT_EQ(trainer->Log().find(kTold) == std::string::npos, enough) << job->Logs();
  }
}

class MemoryFromTheStart : public testing::TestWithParam<int> {};
TEST_P(MemoryFromTheStart, IsEnoughOrAnError) { ExpectErrorOrSuccess(StrCat("--headroom_mb=", GetParam())); }
INSTANTIATE_TEST_SUITE_P(Megabytes, MemoryFromTheStart,
                         testing::Values(32, 128, 256, 272, 288, 304, 320, 352, 384, 512));

TEST(OutOfMemory, IsToldByTheServerAndByTheTrainer) {
  const auto job = LargeJob();
  Process& pserver = job->StartPserver(0, {"--headroom_mb=4096", "--ready_headroom_mb=60"});
  Process& trainer = job->StartTrainer(0);
  EXPECT_EQ(pserver.Wait(seconds(30)), 1) << job->Logs();
  EXPECT_EQ(trainer.Wait(seconds(30)), 1) << job->Logs();
  const std::string told = StrCat("pserver ", job->address(0), ": not enough memory to go on");
  for (const Process* process : {&pserver, &trainer})
    EXPECT_NE(process->Log().find(told), std::string::npos) << job->Logs();
}

}  // namespace
}  // namespace penstock::test
