#include "framework/vector/sums.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tests/unit/vector/each_isa.h"

namespace penstock::vec {
namespace {

// The definition of the header.
template <typename Term>
double InLanes(const std::vector<float>& x, Term term) {
  double lanes[32] = {};
  for (std::size_t i = 0; i < x.size(); ++i) lanes[i % 32] += term(static_cast<double>(x[i]));
  for (std::size_t width = 16; width > 0; width /= 2) {
    for (std::size_t i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

const std::vector<std::size_t> kCounts = {0, 1, 5, 16, 31, 32, 33, 63, 64, 100, 1027};

TEST(Sums, AddInTheDocumentedLaneOrder) {
  OnEachIsa([](Isa) {
    for (const std::size_t count : kCounts) {
      const std::vector<float> x = Random(count, 3, 1);
      EXPECT_EQ(Sum(x.data(), count), InLanes(x, [](double v) { return v; })) << count;
      EXPECT_EQ(SumOfSquares(x.data(), count), InLanes(x, [](double v) { return v * v; })) << count;
    }
  });
}

TEST(Sums, MaximumAndMinimumPropagateNaN) {
  OnEachIsa([](Isa) {
    EXPECT_EQ(Largest(nullptr, 0), -kInfinity);
    EXPECT_EQ(Smallest(nullptr, 0), kInfinity);
    for (const std::size_t count : kCounts) {
      if (count == 0) continue;
      std::vector<float> x = Random(count, 3, -40);
      EXPECT_EQ(Largest(x.data(), count), std::ranges::max(x)) << count;
      EXPECT_EQ(Smallest(x.data(), count), std::ranges::min(x)) << count;
      for (const std::size_t at : {std::size_t{0}, count / 2, count - 1}) {
        const float before = std::exchange(x[at], kNaN);
        EXPECT_TRUE(std::isnan(Largest(x.data(), count))) << count << " at " << at;
        EXPECT_TRUE(std::isnan(Smallest(x.data(), count))) << count << " at " << at;
        x[at] = before;
      }
    }
  });
}

TEST(Sums, RowsAreAddedInOrder) {
  for (const std::size_t columns : {1, 3, 8, 50, 131}) {
    const std::size_t rows = 37, stride = columns + 3;
    std::vector<float> x = Random(rows * stride, 2, 1);
    std::vector<double> sums(columns, 0.5), squares(columns, 0.5);
    std::vector<float> largest(columns, 0.5f), smallest(columns, 0.5f);
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t j = 0; j < columns; ++j) {
        const float each = x[row * stride + j];
        sums[j] += each;
        squares[j] += static_cast<double>(each) * each;
        largest[j] = std::max(largest[j], each);
        smallest[j] = std::min(smallest[j], each);
      }
    }
    OnEachIsa([&](Isa) {
      std::vector<double> made(columns, 0.5), made_squares(columns, 0.5);
      std::vector<float> most(columns, 0.5f), least(columns, 0.5f);
      AddRowsInDouble(x.data(), stride, rows, columns, made.data());
      AddSquaresInDouble(x.data(), stride, rows, columns, made_squares.data());
      LargestOfRows(x.data(), stride, rows, columns, most.data());
      SmallestOfRows(x.data(), stride, rows, columns, least.data());
      EXPECT_EQ(made, sums) << columns;
      EXPECT_EQ(made_squares, squares) << columns;
      EXPECT_EQ(most, largest) << columns;
      EXPECT_EQ(least, smallest) << columns;
    });
  }
}

TEST(Sums, NaNOfARowStaysInItsColumn) {
  const std::vector<float> x = {1, kNaN, 3, 4, 5, kInfinity};
  OnEachIsa([&](Isa) {
    std::vector<float> largest(3, -kInfinity), smallest(3, kInfinity);
    LargestOfRows(x.data(), 3, 2, 3, largest.data());
    SmallestOfRows(x.data(), 3, 2, 3, smallest.data());
    EXPECT_TRUE(largest[0] == 4 && std::isnan(largest[1]) && largest[2] == kInfinity);
    EXPECT_TRUE(smallest[0] == 1 && std::isnan(smallest[1]) && smallest[2] == 3);
  });
}

TEST(Sums, MaximumAndMinimumPropagateNaNAtAnyPosition) {
  std::vector<float> x = Random(300, 2);
  OnEachIsa([&](Isa) {
    for (float& each : x) {
      const float before = each;
      each = kNaN;
      EXPECT_TRUE(std::isnan(Largest(x.data(), x.size())));
      EXPECT_TRUE(std::isnan(Smallest(x.data(), x.size())));
      each = before;
    }
  });
}

TEST(Sums, ColumnMaximaKeepTheFirstOfEqualZeros) {
  constexpr std::size_t kRows = 11, kColumns = 37;
  std::vector<float> x(kRows * kColumns);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = i % 3 == 0 ? -0.0f : 0.0f;
  OnEachIsa([&](Isa) {
    std::vector<float> largest(kColumns, -kInfinity), smallest(kColumns, kInfinity);
    LargestOfRows(x.data(), kColumns, kRows, kColumns, largest.data());
    SmallestOfRows(x.data(), kColumns, kRows, kColumns, smallest.data());
    for (std::size_t j = 0; j < kColumns; ++j) {
      EXPECT_EQ(std::signbit(largest[j]), std::signbit(x[j])) << j;
      EXPECT_EQ(std::signbit(smallest[j]), std::signbit(x[j])) << j;
    }
  });
}

}  // namespace
}  // namespace penstock::vec
