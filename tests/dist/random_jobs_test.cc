// Random jobs of two trainers and two pservers: every job that the check accepts trains one step in real
// processes, and its loss is that of one machine with all the data.
//
//   random_jobs_test --count 500 --seed 1   the slow test
//   random_jobs_test --count 1 --seed 37    the job that a failure named
#include <gflags/gflags.h>
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <map>

#include "executor/schedule/executor.h"
#include "framework/runtime/random.h"
#include "operators/all_ops.h"
#include "tests/dist/job.h"
#include "tests/support/random_network.h"
#include "tests/support/role_programs.h"
#include "transpiler/check/check.h"
#include "transpiler/pipeline/check_role_set.h"
#include "transpiler/pipeline/transpile.h"

DEFINE_int32(count, 4, "how many jobs");
DEFINE_int32(seed, 1, "of the first job; each next one has the next number");

namespace penstock::test {
namespace {

constexpr int kTrainers = 2;
constexpr Dim kExamples = 4;  // of each trainer

plan::TranspileConfig TwoByTwo(std::uint64_t seed) {
  plan::TranspileConfig config;
  config.trainers = kTrainers;
  config.trainer_ids = {0, 1};
  config.pservers = {"127.0.0.1:7000", "127.0.0.1:7001"};
  config.slice_params = seed % 4 != 0;
  config.min_block_size = 1;
  config.allow_small_blocks = true;
  return config;
}

// Both trainers have the same examples, so that their mean gradient is that of one machine, whatever the
// network does with a batch.
Arrays FeedsOf(const RandomNetwork& network, std::uint64_t seed) {
  Draw draw(seed);
  Arrays feeds;
  for (const std::string& name : network.feeds) {
    const Var& var = *network.main.main().FindVar(name);
    Tensor value(var.type->dtype, var.shape().WithRows(kExamples));
    for (std::int64_t i = 0; i < value.count(); ++i) {
      if (var.type->dtype == DType::kInt64) {
        value.Data<std::int64_t>()[i] = draw.Below(static_cast<int>(network.below.at(name)));
      } else {
        value.Data<float>()[i] = static_cast<float>(draw.Between(-100, 100)) / 50.0f;
      }
    }
    feeds[name] = std::move(value);
  }
  return feeds;
}

float LossOf(const Tensor& loss) { return loss.Data<float>()[0]; }

// The loss of one machine; its error if the program does not run there.
Result<float> OnOneMachine(const RandomNetwork& network, const Arrays& arrays) {
  exec::Executor executor(AllOps(), {.threads = 1});
  Scope scope;
  PENSTOCK_RETURN_IF_ERROR(executor.Run(network.startup, scope, {}, {}).status());
  std::vector<exec::Feed> feeds;
  for (const auto& [name, value] : arrays) feeds.push_back({name, value});
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<Variable> got,
                            executor.Run(network.main, scope, feeds, std::vector<std::string>{network.loss}));
  return LossOf(*got[0].If<Tensor>());
}

enum class Outcome { kRan, kRefused, kFailsAlone };

void RunJob(const RoleSet& roles, const RandomNetwork& network, const Arrays& feeds, float alone) {
  Job job(TrainersOf(roles), PserversOf(roles));
  job.fetches = {network.loss};
  for (int t = 0; t < kTrainers; ++t) job.trainer(t).feeds.push_back(feeds);
  ASSERT_TRUE(job.Run(std::chrono::seconds(60))) << job.Logs();
  for (int t = 0; t < kTrainers; ++t) {
    const float loss = LossOf(job.Fetched(t, 0).at(network.loss));
    if (!std::isfinite(alone)) continue;
    EXPECT_NEAR(loss, alone, 1e-5 + 1e-4 * std::abs(alone)) << "trainer " << t;
  }
}

Outcome TrySeed(std::uint64_t seed) {
  const RandomNetwork network =
      MakeRandomNetwork(AllOps(), seed, {.runnable = true, .tables = true, .sparse_layers = true});
  const Arrays feeds = FeedsOf(network, seed);
  const Result<float> alone = OnOneMachine(network, feeds);
  if (!alone.ok()) return Outcome::kFailsAlone;  // an optimizer without an update by rows, say
  const Result<RoleSet> roles = Transpile(AllOps(), network.main, network.startup, TwoByTwo(seed));
  if (!roles.ok()) return Outcome::kRefused;
  const check::SourcePrograms source{network.main, network.startup};
  const check::CheckReport report = check::CheckRoles(FilesOf(*roles), AllOps(), {.source = &source});
  EXPECT_EQ(report.errors(), 0) << report.ToString();
  if (report.errors() > 0) return Outcome::kRefused;
  RunJob(*roles, network, feeds, *alone);
  return Outcome::kRan;
}

TEST(RandomJobs, AcceptedSetsTrainAStep) {
  std::map<Outcome, int> outcomes;
  for (int i = 0; i < FLAGS_count; ++i) {
    const auto seed = static_cast<std::uint64_t>(FLAGS_seed) + static_cast<std::uint64_t>(i);
    SCOPED_TRACE(testing::Message() << "repeat with: random_jobs_test --count 1 --seed " << seed);
    ++outcomes[TrySeed(seed)];
  }
  std::cout << outcomes[Outcome::kRan] << " jobs ran, " << outcomes[Outcome::kRefused] << " were refused, "
            << outcomes[Outcome::kFailsAlone] << " fail on one machine\n";
  EXPECT_GE(2 * outcomes[Outcome::kRan], FLAGS_count);
}

}  // namespace
}  // namespace penstock::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  return RUN_ALL_TESTS();
}
