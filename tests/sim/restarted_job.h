// The job of simulations whose processes are killed and started again, and how their seeds run.
//
//   ToyJob job = RestartedJob(seed);
//   ForEachSeed([&](std::uint64_t seed) { ... });       // all, or the one of PENSTOCK_SIM_SEED
//   ASSERT_TRUE(RunUntilStep(sim, 1, 2));               // trainer 1 has ended two steps
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>

#include "tests/sim/seeds.h"
#include "tests/sim/simulation.h"

namespace penstock::test {

// Two or three trainers, two servers; every kind of param is on one of them.
inline ToyJob RestartedJob(std::uint64_t seed) {
  ToyJob job;
  job.trainers = 2 + static_cast<int>(seed % 5 == 4);
  job.servers = {"ps0:1", "ps1:1"};
  job.lr_block = seed % 2 == 1;
  job.params = {
      {.name = "w.0", .shape = {5, 3}, .server = 0, .optimizer = "adam", .decay = true},
      {.name = "w.1", .shape = {4, 3}, .server = 1, .optimizer = "adam", .decay = true},
      {.name = "wide", .shape = {2, 17}, .server = 0, .optimizer = "momentum"},
      {.name = "table.0", .shape = {40, 3}, .server = 0, .optimizer = "adam", .table = true, .salt = seed},
      {.name = "table.1", .shape = {9, 2}, .server = 1, .optimizer = "sgd", .table = true, .salt = seed},
      {.name = "frozen", .shape = {7, 3}, .server = static_cast<int>(seed % 2), .start = true}};
  return job;
}

// Runs seeds until one fails; returns their number. With PENSTOCK_SIM_SEED, only that one.
template <typename Run>
std::uint64_t ForEachSeed(const Run& run) {
  std::uint64_t begin = 0, end = SeedCount();
  if (const char* one = std::getenv("PENSTOCK_SIM_SEED")) end = 1 + (begin = std::strtoull(one, nullptr, 10));
  for (std::uint64_t seed = begin; seed < end && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(StrCat("seed ", seed, ": run it alone with PENSTOCK_SIM_SEED=", seed));
    run(seed);
  }
  return end - begin;
}

// Returns whether the trainer has ended `steps` steps within a minute.
inline bool RunUntilStep(Simulation& sim, int trainer, std::uint64_t steps) {
  return sim.net().RunUntil([&] { return sim.trainer(trainer).session().step() == steps; },
                            std::chrono::minutes(1));
}

}  // namespace penstock::test
