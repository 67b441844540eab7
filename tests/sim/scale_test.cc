// The number of servers changes at random steps, over a bad network, and servers are killed meanwhile: the
// job ends with the bytes of one thread.
//
// To run one seed:  sim_scale with PENSTOCK_SIM_SEED=17
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/sim/expect_reference.h"
#include "tests/sim/scale_job.h"
#include "tests/sim/seeds.h"

namespace penstock::test {
namespace {

ScaleSetup SetupOf(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  ScaleSetup setup{
      .trainers = 1 + static_cast<int>(seed % 3), .lr_block = seed % 2 == 1, .kills = seed % 4 >= 2};
  std::uint64_t step = 0;
  int servers = 0;
  for (int p = 0; p < 3; ++p) {
    servers = 1 + (servers + static_cast<int>(random() % 2)) % 3;  // another number each time
    step += 1 + random() % 3;
    setup.placements.push_back({.servers = servers, .until = step});
  }
  return setup;
}

void ExpectReference(const ScaleJob& job, const ScaleSetup& setup) {
  const std::uint64_t steps = setup.placements.back().until;
  const std::vector<ToyValues> reference = ToyReference(job.job(0), static_cast<int>(steps));
  for (int t = 0; t < setup.trainers; ++t) {
    ASSERT_EQ(job.seen(t).size(), reference.size());
    for (std::size_t version = 0; version < reference.size(); ++version) {
      for (const auto& [name, values] : job.seen(t)[version]) {
        const std::string what = StrCat("trainer ", t, ", version ", version, " of ", name);
        const auto param = std::ranges::find_if(job.job(0).params, [&](const ToyParam& one) {
          return name == one.name || name == StrCat("rows of ", one.name);
        });
        ASSERT_NE(param, job.job(0).params.end()) << what;
        const std::vector<float>& whole = reference[version].at(param->name);
        ExpectBytes(values,
                    param->table ? ToyRows(*param, whole, job.job(0).IdsOf(*param, t, version)) : whole,
                    what);
      }
    }
  }
  const ToyValues held = job.Held();
  ASSERT_EQ(held.size(), job.job(0).params.size());
  for (const auto& [name, values] : held) ExpectBytes(values, reference.back().at(name), name);
}

TEST(Scale, EverySeedEqualsTheOneThreadReference) {
  std::uint64_t begin = 0, end = SeedCount(), restarts = 0;
  if (const char* one = std::getenv("PENSTOCK_SIM_SEED")) end = 1 + (begin = std::strtoull(one, nullptr, 10));
  for (std::uint64_t seed = begin; seed < end && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(StrCat("seed ", seed, ": run it alone with PENSTOCK_SIM_SEED=", seed));
    const ScaleSetup setup = SetupOf(seed);
    ScaleJob job(
        setup, seed,
        seed % 3 == 2 ? kBreaking : Faults{.lost = 0.05, .twice = 0.1, .late = 0.02, .breaks = 1e-6});
    const Status status = job.Run();
    ASSERT_TRUE(status.ok()) << status.ToString();
    ExpectReference(job, setup);
    EXPECT_EQ(job.old_routes(), 4 * 2 * setup.trainers);
    restarts += job.restarts();
  }
  if (end - begin == 1) return;
  EXPECT_GT(restarts, (end - begin) / 4) << "many seeds kill servers";
}

}  // namespace
}  // namespace penstock::test
