#include "framework/runtime/core_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace penstock {
namespace {

TEST(CoreThreads, EachTaskRunsOnceBeforeReturn) {
  std::vector<std::atomic<int>> done(100);
  CoreThreads().ForEach(done.size(), [&](std::size_t i) { ++done[i]; });
  for (const std::atomic<int>& count : done) EXPECT_EQ(count, 1);
}

TEST(CoreThreads, ForEachOfZeroTasksReturns) {
  CoreThreads().ForEach(0, [](std::size_t) { FAIL(); });
}

}  // namespace
}  // namespace penstock
