// Every learning-rate schedule in a job of processes: the servers count steps and decay rates like one
// machine, whose numbers are Fluid's.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "executor/schedule/executor.h"
#include "operators/all_ops.h"
#include "tests/dist/job.h"
#include "tests/support/corpus.h"
#include "tests/support/op_harness.h"
#include "tests/support/role_programs.h"
#include "tests/support/run_program.h"
#include "transpiler/pipeline/transpile.h"

namespace penstock::test {
namespace {

constexpr int kSteps = 20;
constexpr char kWeight[] = "w";

std::string Folder() { return CorpusOrSelection() + "/open/lr/"; }

std::vector<std::string> Schedules() { return FilesEndingIn(Folder(), ".sgd.pb"); }

// Both servers hold a row of the weight, and so both have the schedule.
plan::TranspileConfig TwoByTwo() {
  plan::TranspileConfig config;
  config.trainers = 2;
  config.trainer_ids = {0, 1};
  config.pservers = {"127.0.0.1:7000", "127.0.0.1:7001"};
  config.min_block_size = 1;
  config.allow_small_blocks = true;
  return config;
}

Tensor Filled(const Shape& shape, float value) {
  Tensor tensor(DType::kFp32, shape);
  for (float& element : tensor.Span<float>()) element = value;
  return tensor;
}

// The weight after each step of one machine with the batches of both trainers. Its gradient is 1 in each
// step.
std::vector<Tensor> OnOneMachine(const Program& main, const Program& startup) {
  exec::Executor executor(AllOps(), {.threads = 1});
  Scope scope;
  EXPECT_TRUE(executor.Run(startup, scope, {}, {}).ok());
  const std::vector<exec::Feed> feeds = {{"x", TensorOf<float>({2, 2}, {2, 2, 0, 0})}};
  const std::vector<std::string> fetches = {kWeight};
  std::vector<Tensor> weights;
  for (int step = 0; step < kSteps; ++step) {
    const auto got = executor.Run(main, scope, feeds, fetches);
    EXPECT_TRUE(got.ok()) << got.status().ToString();
    weights.push_back(got.ok() ? (*got)[0].If<Tensor>()->Clone() : Filled({2, 1}, -1));
  }
  return weights;
}

class Schedule : public testing::TestWithParam<std::string> {};

TEST_P(Schedule, InAJobEqualsOneMachine) {
  const Program main = ProgramOf(StrCat(Folder(), GetParam(), ".sgd.pb"));
  const Program startup = ProgramOf(StrCat(Folder(), GetParam(), ".sgd.startup.pb"));
  const Result<RoleSet> roles = Transpile(AllOps(), main, startup, TwoByTwo());
  ASSERT_TRUE(roles.ok()) << roles.status().ToString();
  Job job(TrainersOf(*roles), PserversOf(*roles));
  job.fetches = {kWeight};
  for (int i = 0; i < 2; ++i) {
    job.trainer(i).feeds.assign(kSteps, {{"x", Filled({1, 2}, i == 0 ? 2.0f : 0.0f)}});
  }
  ASSERT_TRUE(job.Run(std::chrono::seconds(60))) << job.Logs();

  const std::vector<Tensor> weights = OnOneMachine(main, startup);
  const auto facts = nlohmann::json::parse(BytesOf(StrCat(Folder(), GetParam(), ".json")))["sgd"];
  for (int step = 0; step < kSteps; ++step) {
    const auto s = static_cast<std::size_t>(step);
    const double fluid = facts["w00_after_step"][s].get<double>();
    for (int i = 0; i < 2; ++i) {
      const Tensor got = job.Fetched(i, step).at(kWeight);
      EXPECT_NEAR(ElementAt(got, 0), fluid, 1e-5) << "step " << step;
      for (int row = 0; row < 2; ++row) {
        EXPECT_EQ(ElementAt(got, row), ElementAt(weights[s], row)) << "step " << step << ", row " << row;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Corpus, Schedule, testing::ValuesIn(Schedules()),
                         [](const auto& info) { return info.param; });

TEST(Schedules, AllCasesExist) { EXPECT_GE(Schedules().size(), CorpusFolder().empty() ? 4u : 11u); }

}  // namespace
}  // namespace penstock::test
