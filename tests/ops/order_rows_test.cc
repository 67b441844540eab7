// Sorting of row numbers is stable for any numbers.
#include "operators/common/order_rows.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "operators/common/merge_rows.h"

namespace penstock {
namespace {

struct Numbered {
  std::int64_t row;
  std::size_t position;
  bool operator==(const Numbered&) const = default;
};

void ExpectStable(std::size_t count, std::int64_t least, std::int64_t most, std::uint32_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<std::int64_t> row(least, most);
  std::vector<Numbered> entries(count), spare;
  for (std::size_t i = 0; i < count; ++i) entries[i] = {row(random), i};
  std::vector<Numbered> expected = entries;
  std::ranges::stable_sort(expected, {}, &Numbered::row);
  OrderByRow(entries, spare);
  EXPECT_EQ(entries, expected) << count << " rows from " << least << " to " << most;
}

TEST(OrderByRow, EqualsAStableSort) {
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  for (const std::size_t count : {0, 1, 2, 7, 48, 49, 1000, 20000}) {
    ExpectStable(count, 0, 0, 1);
    ExpectStable(count, 0, 9, 2);
    ExpectStable(count, 0, 2047, 3);
    ExpectStable(count, 5000, 7048, 4);
    ExpectStable(count, 0, 1000000, 5);
    ExpectStable(count, -3, 1LL << 40, 6);
    ExpectStable(count, kLeast, kMost, 7);
  }
}

TEST(RowMerger, CopiesOnlyRowsThatOccurTwice) {
  SelectedRows x;
  x.height = 100;
  x.rows = {7, 3, 7, 90, 3, 7, 1};
  x.ResetValue(DType::kFp32, Shape({7, 2}));
  float* const values = x.value.Data<float>();
  for (int i = 0; i < 14; ++i) values[i] = static_cast<float>(1 << i);
  RowMerger merger;
  const auto rows = merger.Distinct<float>(x);
  ASSERT_EQ(rows.size(), 4U);
  const std::int64_t expected_rows[] = {1, 3, 7, 90};
  const float expected[][2] = {{4096, 8192}, {4 + 256, 8 + 512}, {1 + 16 + 1024, 2 + 32 + 2048}, {64, 128}};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(rows[i].row, expected_rows[i]);
    EXPECT_EQ(rows[i].Values<float>()[0], expected[i][0]) << i;
    EXPECT_EQ(rows[i].Values<float>()[1], expected[i][1]) << i;
  }
  EXPECT_EQ(rows[0].Values<float>(), values + 12);
  EXPECT_EQ(rows[3].Values<float>(), values + 6);
}

}  // namespace
}  // namespace penstock
