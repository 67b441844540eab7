// Servers are killed at any time, also while they write a checkpoint, and started again by themselves: the
// job ends with the bytes of one thread.
//
// To run one seed:  simulation_test --gtest_filter='Recovery.*Seed*' with PENSTOCK_SIM_SEED=17
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "executor/checkpoint/own_part.h"
#include "tests/sim/seeds.h"
#include "tests/sim/simulation.h"

namespace penstock::test {
namespace {

constexpr int kRecoverySteps = 6;

ToyJob RecoveryJob(std::uint64_t seed) {
  ToyJob job;
  job.trainers = 2 + static_cast<int>(seed % 5 == 4);
  job.servers = {"ps0:1", "ps1:1"};
  job.lr_block = seed % 2 == 1;
  job.checkpoint_every = 1 + seed % 4;
  if (seed % 5 == 3) {  // only full logs bring checkpoints
    job.checkpoint_every = 1000;
    job.retention_bytes = 100 + seed % 7 * 60;
  }
  if (seed % 3 < 2) job.early_bytes = seed % 3 * 64;
  job.params = {
      {.name = "w.0", .shape = {5, 3}, .server = 0, .optimizer = "adam", .decay = true},
      {.name = "w.1", .shape = {4, 3}, .server = 1, .optimizer = "adam", .decay = true},
      {.name = "b", .shape = {1}, .server = 1, .optimizer = "sgd"},
      {.name = "wide", .shape = {2, 17}, .server = 0, .optimizer = "momentum"},
      {.name = "table.0", .shape = {40, 3}, .server = 0, .optimizer = "adam", .table = true, .salt = seed},
      {.name = "table.1", .shape = {9, 2}, .server = 1, .optimizer = "sgd", .table = true, .salt = seed},
      {.name = "frozen", .shape = {7, 3}, .server = static_cast<int>(seed % 2), .start = true}};
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

void ExpectReference(Simulation& sim, int steps) {
  const std::vector<ToyValues> reference = ToyReference(sim.job(), steps);
  const auto same = [](const std::vector<float>& got, const std::vector<float>& want) {
    return got.size() == want.size() &&
           (got.empty() || std::memcmp(got.data(), want.data(), got.size() * sizeof(float)) == 0);
  };
  for (int t = 0; t < sim.job().trainers; ++t) {
    const std::vector<ToyValues>& seen = sim.trainer(t).seen();
    ASSERT_TRUE(sim.trainer(t).session().status().ok()) << sim.trainer(t).session().status().ToString();
    ASSERT_EQ(seen.size(), reference.size());
    for (std::size_t v = 0; v < reference.size(); ++v) {
      for (const ToyParam& param : sim.job().params) {
        const std::vector<float>& values = reference[v].at(param.name);
        if (!param.table) {
          EXPECT_TRUE(same(seen[v].at(param.name), values)) << param.name << " version " << v;
          continue;
        }
        if (v == static_cast<std::size_t>(steps)) continue;
        EXPECT_TRUE(
            same(seen[v].at(StrCat("rows of ", param.name)), ToyRows(param, values, ToyIds(param, t, v))))
            << param.name << " version " << v;
      }
    }
  }
  for (const ToyParam& param : sim.job().params) {
    const auto values = sim.server(param.server).scope.Find(param.name)->As<Tensor>().Span<float>();
    EXPECT_TRUE(same({values.begin(), values.end()}, reference.back().at(param.name)))
        << "server " << param.server << ", " << param.name;
  }
}

void RunRecoverySeed(std::uint64_t seed, std::uint64_t& restarts, std::uint64_t& parts) {
  SCOPED_TRACE(StrCat("seed ", seed, ": run it alone with PENSTOCK_SIM_SEED=", seed));
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
  if (const char* seed = std::getenv("PENSTOCK_SIM_SEED"))
    return RunRecoverySeed(std::strtoull(seed, nullptr, 10), restarts, parts);
  const std::uint64_t seeds = SeedCount();
  for (std::uint64_t seed = 0; seed < seeds && !HasFailure(); ++seed) RunRecoverySeed(seed, restarts, parts);
  EXPECT_GT(restarts, seeds) << "most seeds kill servers";
  EXPECT_GT(parts, seeds) << "most servers have made checkpoints";
}

}  // namespace
}  // namespace penstock::test
