// Geo-SGD under any network faults: every update of a server is a delta that a trainer sent, applied once;
// and after each step, every trainer has the values that the reference computes from the versions that it
// received. A delta is therefore what the trainer changed, and a trainer receives each row of a table that
// any trainer has changed, once per change.
//
// To run one seed:  sim_geo with PENSTOCK_SIM_SEED=17
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/sim/geo_check.h"
#include "tests/sim/seeds.h"

namespace penstock::test {
namespace {

void RunSeed(std::uint64_t seed) {
  SCOPED_TRACE(StrCat("seed ", seed, ": run it alone with PENSTOCK_SIM_SEED=", seed));
  GeoSetup setup{.trainers = 2 + static_cast<int>(seed % 3 == 2),
                 .push_every = 1 + static_cast<int>(seed % 4)};
  setup.steps = {5, seed % 2 == 0 ? 5 : 2, 4};  // some have fewer batches
  GeoJob job(setup, seed, FaultsOf(seed));
  const Status status = job.Run();
  ASSERT_TRUE(status.ok()) << status.ToString();
  CheckGeo({&job});
}

TEST(Geo, EverySeedAddsEachDeltaOnce) {
  if (const char* seed = std::getenv("PENSTOCK_SIM_SEED")) return RunSeed(std::strtoull(seed, nullptr, 10));
  for (std::uint64_t seed = 0; seed < SeedCount() && !testing::Test::HasFailure(); ++seed) RunSeed(seed);
}

TEST(Geo, ALoneTrainerEqualsOneMachineExactly) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    GeoJob job({.trainers = 1, .push_every = 1 + static_cast<int>(seed % 3), .steps = {7}}, seed,
               FaultsOf(seed));
    const Status status = job.Run();
    ASSERT_TRUE(status.ok()) << status.ToString();
    ToyValues alone = job.trainer(0).start;
    for (std::size_t step = 0; step < 7; ++step) {
      for (const communicator::GeoVariable& variable : job.settings().variables) {
        GeoJob::TrainStep(variable.name, variable.rows, 0, step, 0, alone[variable.name]);
        EXPECT_TRUE(Same(job.trainer(0).after[step].at(variable.name), alone[variable.name]))
            << variable.name << " after step " << step;
      }
    }
  }
}

}  // namespace
}  // namespace penstock::test
