// Servers are killed at any time, also while they write a checkpoint, and started again by themselves: the
// job ends with the bytes of one thread.
//
// To run one seed:  simulation_test --gtest_filter='Recovery.*Seed*' with PENSTOCK_SIM_SEED=17
#include <gtest/gtest.h>

#include "executor/checkpoint/own_part.h"
#include "tests/sim/expect_reference.h"
#include "tests/sim/restarted_job.h"

namespace penstock::test {
namespace {

constexpr int kRecoverySteps = 6;

ToyJob RecoveryJob(std::uint64_t seed) {
  ToyJob job = RestartedJob(seed);
  job.checkpoint_every = 1 + seed % 4;
  if (seed % 5 == 3) {  // only full logs bring checkpoints
    job.checkpoint_every = 1000;
    job.retention_bytes = 100 + seed % 7 * 60;
  }
  if (seed % 3 < 2) job.early_bytes = seed % 3 * 64;
  const auto at_2 = job.params.begin() + 2;
  job.params.insert(at_2, {.name = "b", .shape = {1}, .server = 1, .optimizer = "sgd"});
  if (seed % 4 == 3) {
    job.params[1].compression = {.kind = Compression::Kind::kTwoBit, .threshold = 0.25f};
    job.params[3].compression = {.kind = Compression::Kind::kFp16};
  }
  return job;
}

// Faults of connections between processes that live; a server may be out of reach at any time.
Faults RecoveryFaults(std::uint64_t seed) {
  return seed % 3 == 2 ? kBreaking : Faults{.lost = 0.05, .twice = 0.1, .late = 0.02, .breaks = 1e-6};
}

bool AnyTrainerIsDone(Simulation& sim) {
  for (int t = 0; t < sim.job().trainers; ++t)
    if (sim.trainer(t).session().CompleteDone()) return true;
  return false;
}

std::string StatesOf(Simulation& sim) {
  std::string text;
  for (int s = 0; s < 2; ++s) {
    const Server& server = sim.server(s);
    text += StrCat("\n  server ", s, server.killed ? " is killed" : server.listener ? " listens" : " starts");
    if (const std::optional<Status> end = server.pserver->Ended())
      text += StrCat(", ended: ", end->ToString());
    for (const std::string& line : server.reports) text += StrCat("\n    ", line);
  }
  return text;
}

void RunRecoverySeed(std::uint64_t seed, std::uint64_t& restarts, std::uint64_t& parts) {
  Simulation sim(RecoveryJob(seed), kRecoverySteps, seed, RecoveryFaults(seed));
  std::mt19937_64 random(seed);
  // A server is killed after so many messages, or in an operation of its disk.
  std::vector<std::uint64_t> at;
  for (std::uint64_t kills = 1 + seed % 3; kills > 0; --kills) at.push_back(random() % 1500);
  std::sort(at.begin(), at.end());
  if (seed % 2 == 0) {
    const int index = static_cast<int>(random() % 2);
    const int operation = static_cast<int>(random() % 25);
    sim.disk(index).before_operation = [&sim, index, operation, done = false]() mutable {
      FaultyDisk& disk = sim.disk(index);
      if (done || disk.operations() != operation || AnyTrainerIsDone(sim) || sim.server(index).killed) return;
      done = true;
      disk.CrashAt(operation);
      sim.KillAndRestart(index);
    };
  }
  std::size_t killed = 0;
  ASSERT_TRUE(sim.Run([&] {
    if (killed == at.size() || sim.net().messages() < at[killed] || AnyTrainerIsDone(sim)) return;
    const int index = static_cast<int>(random() % 2);
    if (sim.server(index).killed || sim.server(index).pserver->Ended()) return;
    ++killed;
    sim.KillAndRestart(index);
  })) << "the job did not end: "
      << sim.Waiting() << StatesOf(sim);
  restarts += sim.restarts();
  ExpectReference(sim, kRecoverySteps);
  for (int s = 0; s < 2; ++s) {
    ASSERT_TRUE(sim.server(s).pserver->Ended()->ok()) << sim.server(s).pserver->Ended()->ToString();
    const auto part =
        checkpoint::NewestOwnPart(sim.disk(s), "ckpt", {.server = s, .servers = 2, .run = "sim.0"});
    parts += part.ok() && *part ? 1 : 0;
  }
}

// In some seeds the checkpoint takes longer than the step.
TEST(Recovery, ATrainerWithAFullLogSaysWhatItWaitsFor) {
  bool said = false;
  for (std::uint64_t seed = 0; seed < SeedCount() / 4 && !said && !HasFailure(); ++seed) {
    ToyJob job = RecoveryJob(3);
    job.retention_bytes = 1;
    Simulation sim(job, kRecoverySteps, seed, RecoveryFaults(0));
    ASSERT_TRUE(sim.Run([&] {
      const std::string waits = sim.trainer(0).session().WaitingFor();
      said = said || (StartsWith(waits, "a checkpoint of pserver ps") &&
                      EndsWith(waits, "none has, and may keep 1 (PENSTOCK_RETENTION_MB)"));
    })) << sim.Waiting();
    ExpectReference(sim, kRecoverySteps);
  }
  EXPECT_TRUE(said);
}

TEST(Recovery, EverySeedEqualsTheOneThreadReference) {
  std::uint64_t restarts = 0, parts = 0;
  const std::uint64_t seeds =
      ForEachSeed([&](std::uint64_t seed) { RunRecoverySeed(seed, restarts, parts); });
  if (seeds == 1) return;
  EXPECT_GT(restarts, seeds) << "most seeds kill servers";
  EXPECT_GT(parts, seeds) << "most servers have made checkpoints";
}

}  // namespace
}  // namespace penstock::test
