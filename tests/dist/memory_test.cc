// A server's memory stays within its limit, whichever trainer pushes first. A server that runs out of memory
// after it was ready ends its job with an error, not a signal, and all trainers learn the reason.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "framework/text/parser.h"
#include "operators/all_ops.h"
#include "tests/dist/job.h"
#include "tests/support/op_harness.h"
#include "tests/support/role_programs.h"
#include "transpiler/pipeline/transpile.h"

namespace penstock::test {
namespace {

using std::chrono::seconds;

// A parameter of `mb` MB, with rows of 4 KB.
constexpr char kMain[] = R"(program
block 0 {
  data x : f32[?, ROWS]
  persist lr : f32[1]
  param w : f32[ROWS, 1024]
  y : f32[?, 1024] = mul(X=x, Y=w)
  loss : f32[1] = mean(X=y) @forward|loss
  loss@GRAD : f32[1] = fill_constant() {shape=[1l], value=1.0, dtype=5} @backward|loss
  (X@GRAD=y@GRAD : f32[?, 1024]) = mean_grad(X=y, Out@GRAD=loss@GRAD) @backward
  (X@GRAD=[], Y@GRAD=w@GRAD : f32[ROWS, 1024]) = mul_grad(X=x, Y=w, Out@GRAD=y@GRAD) @backward(w, w@GRAD)
  (ParamOut=w) = sgd(Param=w, Grad=w@GRAD, LearningRate=lr) @optimize(w, w@GRAD)
}
)";

constexpr char kStartup[] = R"(program
block 0 {
  persist lr : f32[1]
  param w : f32[ROWS, 1024]
  lr = fill_constant() {shape=[1l], value=0.1, dtype=5}
  w = uniform_random() {shape=[ROWSl, 1024l], seed=7}
}
)";

Program Parse(std::string text, int rows, const char* name) {
  for (std::size_t at; (at = text.find("ROWS")) != std::string::npos;) text.replace(at, 4, StrCat(rows));
  return ParseText(text, name).value();
}

std::unique_ptr<Job> LargeJob(int trainers = 2, int rows = 1024) {
  plan::TranspileConfig config;
  config.trainers = trainers;
  config.trainer_ids.clear();
  for (int i = 0; i < trainers; ++i) config.trainer_ids.push_back(i);
  config.pservers = {"127.0.0.1:7000"};
  const Result<RoleSet> roles =
      Transpile(AllOps(), Parse(kMain, rows, "main"), Parse(kStartup, rows, "startup"), config);
  EXPECT_TRUE(roles.ok()) << roles.status().ToString();
  auto job = std::make_unique<Job>(TrainersOf(*roles), PserversOf(*roles));
  for (int i = 0; i < trainers; ++i) {
    for (int step = 0; step < 3; ++step)
      job->trainer(i).feeds.push_back({{"x", Scattered(DType::kFp32, {4, rows}, -1, 1, 1)}});
  }
  return job;
}

// The server's peak memory while it served, in bytes.
double PeakOf(Job& job) {
  constexpr char kSaid[] = "peak_kb ";
  const std::string log = job.Logs();
  const std::size_t at = log.find(kSaid);
  return at == std::string::npos ? 0 : std::stod(log.substr(at + sizeof(kSaid) - 1)) * 1024;
}

// For tools/bench/server_memory: sets the size of the parameter and the limit on early gradients.
int NumberOf(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

// In addition to the parameter, the server may hold one sum, the early gradients, and the process itself.
TEST(ServerMemory, IsBoundedInAnyPushOrder) {
  const int megabytes = NumberOf("PENSTOCK_SERVER_MEMORY_MB", 96);
  const int early_mb = NumberOf("PENSTOCK_SERVER_EARLY_MB", 0);  // 0: the server's default
  for (const bool first_is_last : {false, true}) {
    const auto job = LargeJob(4, megabytes * 256);
    if (first_is_last) job->trainer(0).flags = {"--step_delay_ms=700"};
    job->pserver(0).flags = {StrCat("--early_bytes=", std::uint64_t(early_mb) << 20)};
    ASSERT_TRUE(job->Run(seconds(240))) << job->Logs();
    const double peak_mb = PeakOf(*job) / (1 << 20);
    std::cout << (first_is_last ? "trainer 0 is late" : "all at once") << ": " << peak_mb << " MB\n";
    EXPECT_GT(peak_mb, megabytes);
    if (early_mb == 0) {
      EXPECT_LT(peak_mb, 2.3 * megabytes + 64);
    }
  }
}

constexpr char kTold[] = "E-run-memory";

// Checks the end of a job whose server has little memory: either it was enough, or the server and both
// trainers report that it was not.
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
  if (pserver.Log().find("is ready") == std::string::npos) return;  // it died before it could tell anyone
  for (Process* const trainer : trainers) {
    const std::optional<int> ended = trainer->Wait(seconds(30));
    ASSERT_TRUE(ended.has_value()) << job->Logs();
    EXPECT_EQ(*ended, enough ? 0 : 1) << job->Logs();
    EXPECT_EQ(trainer->Log().find(kTold) == std::string::npos, enough) << job->Logs();
  }
}

class MemoryFromTheStart : public testing::TestWithParam<int> {};
TEST_P(MemoryFromTheStart, IsSufficientOrAnErrorIsReported) {
  ExpectErrorOrSuccess(StrCat("--headroom_mb=", GetParam()));
}
INSTANTIATE_TEST_SUITE_P(Megabytes, MemoryFromTheStart,
                         testing::Values(32, 128, 256, 272, 288, 304, 320, 352, 384, 512));

TEST(OutOfMemory, IsReportedByTheServerAndTheTrainer) {
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
