// A job without an interval of checkpoints: the servers agree on each step through their common folder, and
// all make their parts of the same steps, with the values of these steps.
//
// To run one seed:  simulation_test --gtest_filter='AgreedCuts.*' with PENSTOCK_SIM_SEED=17
#include <gtest/gtest.h>

#include <cstdlib>

#include "executor/checkpoint/folder.h"
#include "tests/sim/expect_reference.h"
#include "tests/sim/seeds.h"
#include "tests/sim/simulation.h"

namespace penstock::test {
namespace {

constexpr int kAgreedSteps = 24;

ToyJob AgreedJob(std::uint64_t seed) {
  ToyJob job;
  job.trainers = 2 + static_cast<int>(seed % 3 == 2);
  job.servers = {"ps0:1", "ps1:1", "ps2:1"};
  job.lr_block = seed % 2 == 1;
  job.checkpoint_share = 0.3 + 0.2 * static_cast<double>(seed % 4);
  job.params = {{.name = "w.0", .shape = {5, 3}, .server = 0, .optimizer = "adam", .decay = true},
                {.name = "w.1", .shape = {4, 3}, .server = 1, .optimizer = "adam", .decay = true},
                {.name = "b", .shape = {1}, .server = 1, .optimizer = "sgd"},
                {.name = "wide", .shape = {2, 17}, .server = 0, .optimizer = "momentum"},
                {.name = "frozen", .shape = {7, 3}, .server = static_cast<int>(seed % 2), .start = true}};
  // Another one updates little, or nothing.
  if (seed % 5 > 0) job.params.push_back({.name = "one", .shape = {1}, .server = 2, .optimizer = "sgd"});
  return job;
}

// Each checkpoint that any server has begun is whole, and has the values of its step.
std::size_t ExpectPartsOfAll(Simulation& sim, const ToyJob& job) {
  const auto found = checkpoint::FindCheckpoints(sim.disk(0), "ckpt");
  EXPECT_TRUE(found.ok()) << found.status().ToString();
  const std::vector<ToyValues> reference = ToyReference(job, kAgreedSteps);
  for (const checkpoint::Found& one : *found) {
    EXPECT_TRUE(one.whole()) << "step " << one.step << ": " << one.lacks;
    EXPECT_LE(one.step, static_cast<std::uint64_t>(kAgreedSteps));
    if (!one.whole()) continue;
    EXPECT_EQ(one.parts.size(), job.servers.size());
    std::size_t params = 0;
    for (const checkpoint::Manifest& part : one.parts) {
      const auto values = checkpoint::ReadPart(sim.disk(0), one.folder, part);
      EXPECT_TRUE(values.ok()) << values.status().ToString();
      for (const checkpoint::Value& value : *values) {
        if (value.entry.kind != checkpoint::ValueKind::kParam) continue;
        const auto got = value.value.If<Tensor>()->Span<float>();
        ExpectBytes({got.begin(), got.end()}, reference[one.step].at(value.entry.name),
                    StrCat("the checkpoint of step ", one.step, ", ", value.entry.name));
        ++params;
      }
    }
    EXPECT_EQ(params, job.params.size());
  }
  return found->size();
}

std::size_t RunAgreedSeed(std::uint64_t seed) {
  SCOPED_TRACE(StrCat("seed ", seed, ": run it alone with PENSTOCK_SIM_SEED=", seed));
  const ToyJob job = AgreedJob(seed);
  Simulation sim(job, kAgreedSteps, seed, {.lost = 0.05, .twice = 0.1, .late = 0.02, .breaks = 1e-6});
  const bool ended = sim.Run();
  EXPECT_TRUE(ended) << "the job did not end: " << sim.Waiting();
  if (!ended) return 0;
  ExpectReference(sim, kAgreedSteps);
  return ExpectPartsOfAll(sim, job);
}

TEST(AgreedCuts, AllServersMakeTheirPartsOfTheSameSteps) {
  if (const char* seed = std::getenv("PENSTOCK_SIM_SEED")) {
    RunAgreedSeed(std::strtoull(seed, nullptr, 10));
    return;
  }
  const std::uint64_t seeds = std::max<std::uint64_t>(SeedCount() / 4, 1);
  std::size_t checkpoints = 0;
  for (std::uint64_t seed = 0; seed < seeds && !HasFailure(); ++seed) checkpoints += RunAgreedSeed(seed);
  EXPECT_GE(checkpoints, seeds);
}

}  // namespace
}  // namespace penstock::test
