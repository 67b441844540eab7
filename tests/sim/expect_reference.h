// Compares a simulated synchronous job with its reference, byte by byte.
//
//   ASSERT_TRUE(sim.Run());
//   ExpectReference(sim, 5);       // after 5 steps
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/sim/simulation.h"

namespace penstock::test {

inline void ExpectBytes(const std::vector<float>& got, const std::vector<float>& want,
                        const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  if (got.empty()) return;
  EXPECT_EQ(std::memcmp(got.data(), want.data(), got.size() * sizeof(float)), 0) << what;
}

// What each process saw, and what the servers hold at the end: the values that one thread computes.
inline void ExpectReference(Simulation& sim, int steps) {
  const std::vector<ToyValues> reference = ToyReference(sim.job(), steps);
  for (int i = 0; i < sim.trainer_count(); ++i) {
    Trainer& trainer = sim.trainer(i);
    if (!trainer.dead()) {
      ASSERT_TRUE(trainer.session().status().ok()) << trainer.session().status().ToString();
      ASSERT_EQ(trainer.first_step() + trainer.seen().size(), reference.size());
    }
    for (std::size_t n = 0; n < trainer.seen().size(); ++n) {
      const std::size_t version = trainer.first_step() + n;
      for (const ToyParam& param : sim.job().params) {
        const ToyValues& seen = trainer.seen()[n];
        const std::vector<float>& values = reference[version].at(param.name);
        const std::string what = StrCat("process ", i, ", version ", version, " of ", param.name);
        const auto rows = seen.find(StrCat("rows of ", param.name));
        if (param.table && rows != seen.end()) {
          ExpectBytes(rows->second, ToyRows(param, values, ToyIds(param, trainer.id(), version)), what);
        } else if (!param.table) {
          ExpectBytes(seen.at(param.name), values, what);
        }
      }
    }
  }
  for (int s = 0; s < 2; ++s) {
    ASSERT_TRUE(sim.server(s).pserver->Ended()->ok()) << sim.server(s).pserver->Ended()->ToString();
    for (const ToyParam& param : sim.job().params) {
      if (param.server != s) continue;
      const auto values = sim.server(s).scope.Find(param.name)->As<Tensor>().Span<float>();
      ExpectBytes({values.begin(), values.end()}, reference.back().at(param.name), param.name);
    }
  }
}

}  // namespace penstock::test
