#include "executor/table/touch_histogram.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace penstock::table {
namespace {

TEST(TouchHistogram, TheOldestRowsAreDroppedFirst) {
  TouchHistogram touched;
  for (std::uint64_t version = 0; version < 10; ++version) touched.Add(version, 100);
  EXPECT_EQ(touched.total(), 1000u);
  EXPECT_EQ(touched.DropOldest(0, 9), 0u);
  EXPECT_EQ(touched.DropOldest(250, 9), 3u) << "whole versions";
  EXPECT_EQ(touched.total(), 700u);
  touched.Remove(2, 100);
  EXPECT_EQ(touched.total(), 700u) << "it is dropped already";
  touched.Remove(3, 100);
  EXPECT_EQ(touched.DropOldest(100, 9), 5u) << "version 3 has no row";
  EXPECT_EQ(touched.DropOldest(10'000, 9), 9u) << "rows of the last version are kept";
  EXPECT_EQ(touched.total(), 100u);
}

// Over far more versions than there are buckets, which get wider: thresholds get coarse, totals stay exact.
TEST(TouchHistogram, TotalsAreThoseOfAMap) {
  std::mt19937_64 random(5);
  for (const std::uint64_t stride : {1u, 3u, 1000u}) {
    TouchHistogram touched;
    std::map<std::uint64_t, std::uint64_t> map;
    std::uint64_t total = 0, version = 0;
    for (int step = 0; step < 20'000; ++step) {
      version += random() % stride + 1;
      touched.Add(version, 10);
      map[version] += 10;
      total += 10;
      if (step % 3 == 0) {
        auto moved = map.lower_bound(random() % (version + 1));
        if (moved != map.end()) {
          touched.Remove(moved->first, 10);
          touched.Add(version, 10);
          map[version] += 10;
          if ((moved->second -= 10) == 0) map.erase(moved);
        }
      }
      if (step % 997 == 996) {
        const std::uint64_t below = touched.DropOldest(total / 3, version);
        std::uint64_t dropped = 0;
        for (auto at = map.begin(); at != map.end() && at->first < below; at = map.erase(at))
          dropped += at->second;
        ASSERT_LE(below, version);
        ASSERT_GE(dropped, total / 3);
        total -= dropped;
      }
      ASSERT_EQ(touched.total(), total) << stride << " " << step;
    }
  }
}

}  // namespace
}  // namespace penstock::table
