#include "framework/vector/column_sums.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/unit/vector/each_isa.h"

namespace penstock::vec {
namespace {

TEST(ColumnSums, AddRowsInOrderForEveryIsaAndSplit) {
  for (const std::size_t columns : {1, 7, 16, 31, 64, 100, 150}) {
    for (const std::size_t rows : {1, 2, 15, 16, 17, 50}) {
      const std::size_t stride = columns + 3;
      const std::vector<float> x = Random(rows * stride, 1), y = Random(rows * stride + 1, 1);
      const std::vector<float> start = Random(columns, 1);
      std::vector<float> sums = start, products = start, by_one_row = start;
      for (std::size_t row = 0; row < rows; ++row) {
        for (std::size_t j = 0; j < columns; ++j) {
          sums[j] += x[row * stride + j];
          products[j] += Times(x[row * stride + j], y[row * stride + j]);
          by_one_row[j] += Times(x[row * stride + j], y[j]);
        }
      }
      OnEachIsa([&](Isa) {
        std::vector<float> got = start, parts = start, multiplied = start, by_one = start;
        AddRows(x.data(), stride, rows, columns, got.data());
        AddRowsOfProducts(x.data(), stride, y.data(), stride, rows, columns, multiplied.data());
        AddRowsOfProducts(x.data(), stride, y.data(), 0, rows, columns, by_one.data());
        for (std::size_t row = 0; row < rows; row += 5) {
          for (std::size_t j = 0; j < columns; j += 9)
            AddRows(x.data() + row * stride + j, stride, std::min<std::size_t>(5, rows - row),
                    std::min<std::size_t>(9, columns - j), parts.data() + j);
        }
        EXPECT_TRUE(SameBytes(got, sums));
        EXPECT_TRUE(SameBytes(parts, sums));
        EXPECT_TRUE(SameBytes(multiplied, products));
        EXPECT_TRUE(SameBytes(by_one, by_one_row));
      });
    }
  }
}

TEST(ColumnSums, NaNStaysInItsColumn) {
  std::vector<float> x(3 * 40, 1.0f);
  x[40 + 37] = std::numeric_limits<float>::quiet_NaN();
  OnEachIsa([&](Isa) {
    std::vector<float> sums(40, 0.0f);
    AddRows(x.data(), 40, 3, 40, sums.data());
    for (std::size_t j = 0; j < 40; ++j) EXPECT_TRUE(j == 37 ? std::isnan(sums[j]) : sums[j] == 3);
  });
}

float InLanes(const std::vector<float>& terms) {
  float lanes[32] = {};
  for (std::size_t i = 0; i < terms.size(); ++i) lanes[i % 32] += terms[i];
  for (std::size_t width = 16; width > 0; width /= 2) {
    for (std::size_t i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

TEST(ColumnSums, OneRowIsSummedInLanes) {
  for (const std::size_t count : {0, 1, 5, 31, 32, 33, 64, 100, 1000}) {
    const std::vector<float> x = Random(count, 1, 1), y = Random(count + 1, 1);
    std::vector<float> products(count);
    std::transform(x.begin(), x.end(), y.begin(), products.begin(), Times);
    OnEachIsa([&](Isa) {
      EXPECT_EQ(SumOfRow(x.data(), count), InLanes(x)) << count;
      EXPECT_EQ(SumOfRowOfProducts(x.data(), y.data(), count), InLanes(products)) << count;
    });
  }
}

}  // namespace
}  // namespace penstock::vec
