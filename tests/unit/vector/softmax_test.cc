#include "framework/vector/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/unit/vector/each_isa.h"

namespace penstock::vec {
namespace {

TEST(Softmax, IsItsDefinition) {
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
          EXPECT_NEAR(y[row * count + i] / wanted, 1, 2e-6) << count << " elements, " << i;
          total += y[row * count + i];
        }
        EXPECT_NEAR(total, 1, 1e-6);
      }
    }
  });
}

TEST(Softmax, BoundsScoresFromBelowAndKeepsNaN) {
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

TEST(Softmax, HasItsGradientAndCrossEntropy) {
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

TEST(Softmax, GivesTheSameBytesForEverySplitAndInPlace) {
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

TEST(Softmax, GivesTheSameBytesWithAvx2AndAvx512) {
  ExpectSameBytesWithFusedProducts([] {
    std::vector<float> all;
    for (std::size_t count = 1; count < 130; ++count) {
      const std::vector<float> x = Random(count, 3);
      std::vector<float> y(count), dx(count);
      Softmax(x.data(), y.data(), 1, count);
      SoftmaxGrad(y.data(), x.data(), dx.data(), 1, count);
      all.insert(all.end(), y.begin(), y.end());
      all.insert(all.end(), dx.begin(), dx.end());
    }
    return all;
  });
}

}  // namespace
}  // namespace penstock::vec
