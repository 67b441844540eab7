#include "framework/vector/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/unit/vector/each_isa.h"

namespace penstock::vec {
namespace {

// The header's bound of the relative error of an element, a rounding being half an ulp. No element here comes
// near it if it is large.
double BoundOf(double score, std::size_t count) {
  const double ulps = 6 + std::abs(score) / 2 + static_cast<double>(count) / 64;
  return std::min(2e-6, ulps * std::numeric_limits<float>::epsilon());
}

TEST(Softmax, MatchesTheDefinition) {
  OnEachIsa([](Isa) {
    for (const std::size_t count : {1, 2, 7, 10, 16, 31, 32, 33, 100, 1000, 10'000}) {
      const std::vector<float> x = Random(3 * count, 4);
      std::vector<float> y(x.size());
      RowScale scales[3];
      Softmax(x.data(), y.data(), 3, count, scales);
      for (std::size_t row = 0; row < 3; ++row) {
        const float* const line = x.data() + row * count;
        const double largest = *std::max_element(line, line + count);
        double sum = 0, total = 0;
        for (std::size_t i = 0; i < count; ++i) sum += std::exp(line[i] - largest);
        EXPECT_EQ(scales[row].largest, static_cast<float>(largest));
        EXPECT_NEAR(scales[row].log_sum, std::log(sum), 2e-6);
        for (std::size_t i = 0; i < count; ++i) {
          const double wanted = std::exp(line[i] - largest) / sum;
          EXPECT_NEAR(y[row * count + i] / wanted, 1, BoundOf(line[i] - largest, count))
              << count << " elements, " << i;
          total += y[row * count + i];
        }
        EXPECT_NEAR(total, 1, 1e-6);
      }
    }
  });
}

TEST(Softmax, ClampsScoresAndPropagatesNaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinity = std::numeric_limits<float>::infinity();
  OnEachIsa([=](Isa) {
    for (const std::size_t count : {5, 40}) {
      std::vector<float> x(4 * count, 1), y(4 * count);
      x[1] = -1000;                         // row 0
      x[count + count - 1] = nan;           // row 1
      x[2 * count] = nan;                   // row 2
      x[3 * count + count / 2] = infinity;  // row 3
      Softmax(x.data(), y.data(), 4, count);
      EXPECT_NEAR(y[1], std::exp(-64.0) / (static_cast<double>(count) - 1), 1e-33);
      for (std::size_t i = count; i < 4 * count; ++i) EXPECT_TRUE(std::isnan(y[i])) << i;
    }
  });
}

TEST(Softmax, GradientAndCrossEntropyMatchTheDefinition) {
  OnEachIsa([](Isa) {
    for (const std::size_t count : {3, 10, 65}) {
      const std::vector<float> x = Random(2 * count, 2), dy = Random(2 * count + 1, 1);
      std::vector<float> y(x.size()), dx(x.size()), share(x.size());
      for (std::size_t i = 0; i < share.size(); ++i) share[i] = static_cast<float>(i % 4) / 8;
      RowScale scales[2];
      float loss[2];
      Softmax(x.data(), y.data(), 2, count, scales);
      SoftmaxGrad(y.data(), dy.data(), dx.data(), 2, count);
      SoftCrossEntropy(x.data(), share.data(), scales, loss, 2, count);
      for (std::size_t row = 0; row < 2; ++row) {
        double along = 0, wanted = 0;
        for (std::size_t i = row * count; i < (row + 1) * count; ++i) {
          along += static_cast<double>(dy[i]) * y[i];
          wanted -= share[i] * std::log(static_cast<double>(y[i]));
        }
        EXPECT_NEAR(loss[row], wanted, 1e-5 * (1 + wanted));
        for (std::size_t i = row * count; i < (row + 1) * count; ++i)
          EXPECT_NEAR(dx[i], y[i] * (dy[i] - along), 1e-6);
      }
    }
  });
}

TEST(Softmax, SoftLabelCrossEntropyMatchesTheDefinition) {
  OnEachIsa([](Isa) {
    for (const std::size_t count : {1, 3, 10, 65, 1000}) {
      std::vector<float> p = Random(2 * count, 1), share(p.size());
      for (float& each : p) each = std::abs(each);
      for (std::size_t i = 0; i < share.size(); ++i) share[i] = static_cast<float>(i % 4) / 8;
      p[0] = 0, share[0] = 0;  // the bounded logarithm times 0
      float loss[2];
      CrossEntropyOfShares(p.data(), share.data(), loss, 2, count);
      for (std::size_t row = 0; row < 2; ++row) {
        double wanted = 0, size = 0;
        for (std::size_t i = row * count; i < (row + 1) * count; ++i) {
          if (share[i] == 0) continue;
          wanted -= share[i] * std::log(static_cast<double>(p[i]));
          size += std::abs(share[i] * std::log(static_cast<double>(p[i])));
        }
        EXPECT_NEAR(loss[row], wanted, 2e-6 * size);
      }
      p[1] = kNaN;
      CrossEntropyOfShares(p.data(), share.data(), loss, 2, count);
      EXPECT_TRUE(std::isnan(loss[count == 1 ? 1 : 0]));
    }
    const float none = 0, whole = 1;
    float loss = 0;
    CrossEntropyOfShares(&none, &whole, &loss, 1, 1);
    EXPECT_EQ(loss, 1e20f);
  });
}

// x with rows and columns exchanged
std::vector<float> Turned(const std::vector<float>& x, std::size_t rows) {
  const std::size_t columns = x.size() / rows;
  std::vector<float> turned;
  for (std::size_t j = 0; j < columns; ++j) {
    for (std::size_t i = 0; i < rows; ++i) turned.push_back(x[i * columns + j]);
  }
  return turned;
}

TEST(Softmax, ColumnsEqualRows) {
  OnEachIsa([](Isa) {
    for (const std::size_t count : {1, 2, 3, 4, 5, 19, 300}) {
      for (const std::size_t columns : {1, 5, 16, 33}) {
        std::vector<float> x = Random(count * columns, 4);
        const std::vector<float> dy = Random(x.size(), 1);
        if (columns == 33) x[2] = kNaN, x[7] = -1000;
        std::vector<float> y(x.size()), dx(x.size()), of_columns(x.size());
        std::vector<float> self = Turned(x, columns), slopes = Turned(dy, columns);
        Softmax(x.data(), y.data(), columns, count);
        SoftmaxGrad(y.data(), dy.data(), dx.data(), columns, count);
        SoftmaxOfColumns(self.data(), self.data(), count, columns, columns);
        of_columns = self;
        SoftmaxGradOfColumns(self.data(), slopes.data(), slopes.data(), count, columns, columns);
        const std::vector<float> rows = Turned(of_columns, count), grads = Turned(slopes, count);
        for (std::size_t i = 0; i < x.size(); ++i) {
          if (std::isnan(y[i])) {
            EXPECT_TRUE(std::isnan(rows[i]) && std::isnan(grads[i])) << i;
          } else {
            EXPECT_NEAR(rows[i] / y[i], 1, 2e-6) << count << " x " << columns << ", " << i;
            EXPECT_NEAR(grads[i], dx[i], 2e-6);
          }
        }
      }
    }
  });
}

TEST(Softmax, ResultsDoNotDependOnTheSplitOrInPlace) {
  const std::size_t rows = 9, count = 45;
  const std::vector<float> x = Random(rows * count, 3);
  OnEachIsa([&](Isa) {
    std::vector<float> whole(x.size()), parts(x.size()), self = x;
    Softmax(x.data(), whole.data(), rows, count);
    for (std::size_t row = 0; row < rows; ++row)
      Softmax(x.data() + row * count, parts.data() + row * count, 1, count);
    Softmax(self.data(), self.data(), rows, count);
    EXPECT_TRUE(SameBytes(whole, parts));
    EXPECT_TRUE(SameBytes(whole, self));
  });
}

TEST(Softmax, Avx2AndAvx512GiveTheSameBytes) {
  ExpectSameBytesWithFusedProducts([] {
    std::vector<float> all;
    for (std::size_t count = 1; count < 130; ++count) {
      const std::vector<float> x = Random(count, 3);
      std::vector<float> y(count), dx(count);
      Softmax(x.data(), y.data(), 1, count);
      SoftmaxGrad(y.data(), x.data(), dx.data(), 1, count);
      all.insert(all.end(), y.begin(), y.end());
      all.insert(all.end(), dx.begin(), dx.end());
      SoftmaxOfColumns(x.data(), y.data(), 1, count, count);
      all.insert(all.end(), y.begin(), y.end());
    }
    return all;
  });
}

}  // namespace
}  // namespace penstock::vec
