#include "executor/graph/memory_plan.h"

#include <gtest/gtest.h>

#include <random>

namespace penstock {
namespace {

bool Overlap(const exec::Lifetime& a, std::size_t a_at, const exec::Lifetime& b, std::size_t b_at) {
  const bool in_time = a.first <= b.last && b.first <= a.last;
  const bool in_space = a_at < b_at + b.bytes && b_at < a_at + a.bytes;
  return in_time && in_space;
}

TEST(MemoryPlan, AChainNeedsTwoBuffersAtATime) {
  // t0 -> t1 -> t2 -> t3: each is read by the instruction that writes the next.
  const std::vector<exec::Lifetime> chain = {{100, 0, 1}, {100, 1, 2}, {100, 2, 3}, {100, 3, 3}};
  const exec::MemoryPlan plan = exec::PlanMemory(chain);
  EXPECT_EQ(plan.arena_bytes, 2 * 128u);
  EXPECT_EQ(plan.offsets[0], plan.offsets[2]);
  EXPECT_EQ(plan.offsets[1], plan.offsets[3]);
}

TEST(MemoryPlan, AGapIsSplitAndMergedAgain) {
  const std::vector<exec::Lifetime> lifetimes = {{256, 0, 0}, {64, 1, 1}, {192, 1, 1}, {256, 2, 2}};
  EXPECT_EQ(exec::PlanMemory(lifetimes).arena_bytes, 256u);
}

TEST(MemoryPlan, LiveBuffersNeverOverlap) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<exec::Lifetime> lifetimes;
    for (int i = 0; i < 60; ++i) {
      const int first = static_cast<int>(random() % 40);
      lifetimes.push_back({random() % 500, first, first + static_cast<int>(random() % 10)});
    }
    const exec::MemoryPlan plan = exec::PlanMemory(lifetimes);
    for (std::size_t a = 0; a < lifetimes.size(); ++a) {
      EXPECT_EQ(plan.offsets[a] % 64, 0u);
      EXPECT_LE(plan.offsets[a] + lifetimes[a].bytes, plan.arena_bytes);
      for (std::size_t b = 0; b < a; ++b) {
        EXPECT_FALSE(Overlap(lifetimes[a], plan.offsets[a], lifetimes[b], plan.offsets[b]))
            << a << " and " << b;
      }
    }
  }
}

TEST(MemoryPlan, AnEmptyPlanNeedsNoMemory) {
  EXPECT_EQ(exec::PlanMemory({}).arena_bytes, 0u);
  EXPECT_EQ(exec::PlanMemory({{0, 0, 5}}).arena_bytes, 0u);
}

}  // namespace
}  // namespace penstock
