#include "framework/vector/column_norm.h"

#include <algorithm>
#include <cmath>

#include "framework/vector/piecewise.h"
#include "tests/unit/vector/each_isa.h"

namespace penstock::vec {
namespace {

// The definitions, in double.
struct Columns {
  Matrix m;
  std::vector<float> x, dy, mean, a, b, c;
  Columns(std::size_t rows, std::size_t columns)
      : m{rows, columns},
        x(Random(rows * columns, 1)),
        dy(Random(rows * columns, 1)),
        mean(Random(columns, 1)),
        a(Random(columns, 1)),
        b(Random(columns, 1)),
        c(Random(columns, 1)) {}
};

void ExpectNear(const std::vector<float>& got, const std::vector<double>& wanted, double bound) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], wanted[i], bound) << i;
}

TEST(ColumnNorm, MatchesTheDefinition) {
  for (const std::size_t columns : {1, 3, 16, 20, 33, 64, 131}) {
    for (const std::size_t rows : {1, 2, 15, 16, 17, 50}) {
      const Columns t(rows, columns);
      std::vector<double> squares(columns), sums(columns), alongs(columns), y, dx;
      for (std::size_t i = 0; i < t.x.size(); ++i) {
        const std::size_t j = i % columns;
        const double distance = static_cast<double>(t.x[i]) - t.mean[j];
        squares[j] += distance * distance;
        sums[j] += t.dy[i];
        alongs[j] += t.dy[i] * distance;
        y.push_back(distance * t.a[j] + t.b[j]);
        dx.push_back(static_cast<double>(t.a[j]) * t.dy[i] + t.b[j] * distance + t.c[j]);
      }
      OnEachIsa([&](Isa) {
        std::vector<float> got_squares(columns), got_sums(columns), got_alongs(columns);
        std::vector<float> in_place = t.x, in_slopes = t.dy;
        AddSquaredDistances(t.m, t.x.data(), t.mean.data(), got_squares.data());
        AddSlopes(t.m, t.x.data(), t.dy.data(), t.mean.data(), got_sums.data(), got_alongs.data());
        NormalizeColumns(t.m, in_place.data(), t.mean.data(), t.a.data(), t.b.data(), in_place.data());
        DifferentiateColumns(t.m, t.x.data(), in_slopes.data(),
                             {t.mean.data(), t.a.data(), t.b.data(), t.c.data()}, in_slopes.data());
        ExpectNear(got_squares, squares, 1e-3);
        ExpectNear(got_sums, sums, 1e-3);
        ExpectNear(got_alongs, alongs, 1e-3);
        ExpectNear(in_place, y, 1e-5);
        ExpectNear(in_slopes, dx, 1e-5);
      });
    }
  }
}

TEST(ColumnNorm, Avx2AndAvx512GiveTheSameBytes) {
  const Columns t(37, 45);
  std::vector<std::vector<float>> all;
  for (const Isa isa : IsasOfProcessor()) {
    if (isa < Isa::kAvx2) continue;
    CapIsa(isa);
    std::vector<float> squares(45), sums(45), alongs(45), y(t.x.size()), dx(t.x.size());
    AddSquaredDistances(t.m, t.x.data(), t.mean.data(), squares.data());
    AddSlopes(t.m, t.x.data(), t.dy.data(), t.mean.data(), sums.data(), alongs.data());
    NormalizeColumns(t.m, t.x.data(), t.mean.data(), t.a.data(), t.b.data(), y.data());
    DifferentiateColumns(t.m, t.x.data(), t.dy.data(), {t.mean.data(), t.a.data(), t.b.data(), t.c.data()},
                         dx.data());
    for (const std::vector<float>& more : {squares, sums, alongs, y, dx}) all.push_back(more);
  }
  for (std::size_t i = 5; i < all.size(); ++i) EXPECT_TRUE(SameBytes(all[i], all[i - 5])) << i;
  CapIsa(Isa::kAvx512);
}

TEST(ColumnNorm, NaNStaysInItsColumn) {
  Columns t(5, 20);
  t.x[2 * 20 + 17] = kNaN;
  OnEachIsa([&](Isa) {
    std::vector<float> squares(20), y(t.x.size());
    AddSquaredDistances(t.m, t.x.data(), t.mean.data(), squares.data());
    NormalizeColumns(t.m, t.x.data(), t.mean.data(), t.a.data(), t.b.data(), y.data());
    for (std::size_t j = 0; j < 20; ++j) EXPECT_EQ(std::isnan(squares[j]), j == 17);
    for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i == 2 * 20 + 17);
  });
}

// As one function after the other, also where an element is NaN.
TEST(ColumnNorm, FusedReluEqualsSeparateRelu) {
  for (const std::size_t columns : {3, 16, 37, 131}) {
    Columns t(35, columns);
    std::vector<float> addend = Random(t.x.size(), 1), more = Random(t.x.size(), 1);
    t.x[columns + 1] = kNaN;
    OnEachIsa([&](Isa) {
      for (const bool adds : {false, true}) {
        std::vector<float> y(t.x.size()), slopes = t.dy, sums(columns), alongs(columns);
        NormalizeColumns(t.m, t.x.data(), t.mean.data(), t.a.data(), t.b.data(), y.data());
        for (std::size_t i = 0; adds && i < y.size(); ++i) y[i] += addend[i];
        Relu(y.data(), y.data(), y.size());
        for (std::size_t i = 0; adds && i < y.size(); ++i) slopes[i] += more[i];
        AboveGrad(0, y.data(), slopes.data(), slopes.data(), y.size());
        AddSlopes(t.m, t.x.data(), slopes.data(), t.mean.data(), sums.data(), alongs.data());

        std::vector<float> got(t.x.size()), kept(t.x.size()), got_sums(columns), got_alongs(columns);
        NormalizeColumnsRelu(t.m, t.x.data(), t.mean.data(), t.a.data(), t.b.data(),
                             adds ? addend.data() : nullptr, got.data());
        EXPECT_TRUE(SameBytes(got, y));
        const ReluSlopes relu = {y.data(), t.dy.data(), adds ? more.data() : nullptr};
        AddReluSlopes(t.m, t.x.data(), relu, t.mean.data(), got_sums.data(), got_alongs.data(), kept.data());
        EXPECT_TRUE(SameBytes(kept, slopes) && SameBytes(got_sums, sums) && SameBytes(got_alongs, alongs));
        std::vector<float> in_place = t.dy;
        AddReluSlopes(t.m, t.x.data(), {y.data(), in_place.data(), relu.more}, t.mean.data(), got_sums.data(),
                      got_alongs.data(), in_place.data());
        EXPECT_TRUE(SameBytes(in_place, slopes));
        std::ranges::fill(got_sums, 0.0f);
        AddReluSlopes(t.m, t.x.data(), relu, t.mean.data(), got_sums.data(), got_alongs.data(), nullptr);
        EXPECT_TRUE(SameBytes(got_sums, sums));
      }
    });
  }
}

}  // namespace
}  // namespace penstock::vec
