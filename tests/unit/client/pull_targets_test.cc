#include "executor/client/pull_targets.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>

namespace penstock::client {
namespace {

TEST(PullTargets, FindsWhatAPullWritesInto) {
  std::array<std::byte, 64> memory{};
  const std::byte* at = memory.data();
  PullTargets targets;
  EXPECT_FALSE(targets.Overlaps(at, at + 64));
  targets.Add(at + 16, 8);
  targets.Add(at + 32, 8);
  EXPECT_FALSE(targets.Overlaps(at, at + 16)) << "ends where a target begins";
  EXPECT_TRUE(targets.Overlaps(at, at + 17));
  EXPECT_TRUE(targets.Overlaps(at + 18, at + 20)) << "inside a target";
  EXPECT_TRUE(targets.Overlaps(at + 23, at + 32));
  EXPECT_FALSE(targets.Overlaps(at + 24, at + 32)) << "between two targets";
  EXPECT_TRUE(targets.Overlaps(at, at + 64));
  targets.Remove(at + 16);
  EXPECT_FALSE(targets.Overlaps(at, at + 32));
  EXPECT_TRUE(targets.Overlaps(at, at + 33));
}

TEST(PullTargets, EmptyMemoryIsNoTarget) {
  std::array<std::byte, 8> memory{};
  PullTargets targets;
  targets.Add(memory.data(), 0);
  EXPECT_FALSE(targets.Overlaps(memory.data(), memory.data() + 8));
  targets.Remove(memory.data());
}

}  // namespace
}  // namespace penstock::client
