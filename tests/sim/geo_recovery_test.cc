// Geo-SGD jobs whose processes are killed and that continue from a checkpoint: what the servers hold at the
// end is each delta of each trainer, added once, and each trainer continues with the values that it had.
//
// To run one seed:  sim_geo --gtest_filter='GeoRecovery.*' with PENSTOCK_SIM_SEED=17
#include <gtest/gtest.h>

#include <cstdlib>

#include "executor/checkpoint/folder.h"
#include "tests/sim/geo_check.h"
#include "tests/sim/seeds.h"

namespace penstock::test {
namespace {

GeoSetup RecoverySetup(std::uint64_t seed) {
  GeoSetup setup{.trainers = 2 + static_cast<int>(seed % 3 == 2),
                 .push_every = 1 + static_cast<int>(seed % 3)};
  setup.steps.assign(3, 8 * setup.push_every);
  if (seed % 4 == 1) setup.steps[1] -= 1;  // its last exchange has fewer steps
  setup.checkpoint_every = 1 + seed % 3;
  setup.disk = std::make_shared<FaultyDisk>(seed);
  return setup;
}

struct Outcome {
  int resumed = 0;     // jobs that had a checkpoint
  int unequal = 0;     // whose servers had different exchanges of a trainer
  int sent_again = 0;  // whose trainers had sent deltas that a server lacks
};

void Count(const checkpoint::Found& found, Outcome& outcome) {
  ++outcome.resumed;
  bool unequal = false, again = false;
  for (std::size_t t = 0; t < found.trainers.size(); ++t) {
    for (const checkpoint::Manifest& part : found.parts) {
      unequal |= part.steps_in[t] != found.parts.front().steps_in[t];
      again |= part.steps_in[t] < found.trainers[t].of_trainer->exchanges;
    }
  }
  outcome.unequal += unequal ? 1 : 0;
  outcome.sent_again += again ? 1 : 0;
}

// All processes end at once, up to two times; the last start runs to its end.
void RunKilledJob(std::uint64_t seed, Outcome& outcome) {
  SCOPED_TRACE(StrCat("seed ", seed, ": run it alone with PENSTOCK_SIM_SEED=", seed));
  GeoSetup setup = RecoverySetup(seed);
  std::vector<std::unique_ptr<GeoJob>> starts;
  for (std::uint64_t kills = 1 + seed % 2; kills > 0; --kills) {
    starts.push_back(std::make_unique<GeoJob>(setup, seed + kills, FaultsOf(seed)));
    const Status killed = starts.back()->RunUntilKilled(300 + seed % 17 * 90);
    ASSERT_TRUE(killed.ok()) << killed.ToString();
    const auto found = checkpoint::FindCheckpoints(*setup.disk, "ckpt");
    ASSERT_TRUE(found.ok()) << found.status().ToString();
    const auto newest =
        std::find_if(found->rbegin(), found->rend(), [](const auto& one) { return one.whole(); });
    if (newest == found->rend() || newest->step == setup.resume) {
      starts.pop_back();
      break;
    }
    Count(*newest, outcome);
    setup.resume = newest->step;
    setup.run = StrCat("sim.", kills);
  }
  if (!setup.resume) return;
  setup.run = "sim.last";
  starts.push_back(std::make_unique<GeoJob>(setup, seed + 7, FaultsOf(seed)));
  const Status status = starts.back()->Run();
  ASSERT_TRUE(status.ok()) << status.ToString();
  std::vector<GeoJob*> all;
  for (const auto& start : starts) all.push_back(start.get());
  CheckGeo(all);
}

std::uint64_t Seeds() { return SeedCount() / 2; }

TEST(GeoRecovery, EverySeedOfAKilledJobAddsEachDeltaOnce) {
  Outcome outcome;
  if (const char* seed = std::getenv("PENSTOCK_SIM_SEED"))
    return RunKilledJob(std::strtoull(seed, nullptr, 10), outcome);
  for (std::uint64_t seed = 0; seed < Seeds() && !HasFailure(); ++seed) RunKilledJob(seed, outcome);
  EXPECT_GT(outcome.resumed, static_cast<int>(Seeds() / 2))
      << "most seeds have a checkpoint to continue from";
  EXPECT_GT(outcome.unequal, static_cast<int>(Seeds() / 50));
  EXPECT_GT(outcome.sent_again, static_cast<int>(Seeds() / 50));
}

}  // namespace
}  // namespace penstock::test
