#include "framework/vector/functions.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numbers>

#include "tests/unit/vector/each_isa.h"

namespace penstock::vec {
namespace {

using Function = std::function<void(const float*, float*, std::size_t)>;
using Definition = double (*)(double);

struct Case {
  const char* name;
  Function function;
  Definition definition;
  float least = -std::numeric_limits<float>::infinity();  // the bound holds from here on
};

double DefinedSoftplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

double Normal(double x) { return 0.5 * std::erfc(-x * std::numbers::sqrt2 / 2); }
double DefinedGeluByTanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 * std::numbers::inv_pi) * (x + 0.044715 * x * x * x)));
}

const std::vector<Case>& Cases() {
  static const std::vector<Case> all = {
      {"exp", Exp, [](double x) { return std::exp(x); }},
      {"log", Log, [](double x) { return std::log(x); }},
      {"tanh", Tanh, [](double x) { return std::tanh(x); }},
      {"sigmoid", Sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"softplus", [](auto x, auto y, auto n) { Softplus(1, x, y, n); }, DefinedSoftplus},
      {"log of sigmoid", [](auto x, auto y, auto n) { Softplus(-1, x, y, n); },
       [](double x) { return -DefinedSoftplus(-x); }},
      {"swish", [](auto x, auto y, auto n) { Swish(1, x, y, n); },
       [](double x) { return x / (1 + std::exp(-x)); }, -87},
      {"elu", [](auto x, auto y, auto n) { Elu(1, x, y, n); },
       [](double x) { return x < 0 ? std::expm1(x) : x; }},
      {"erf", Erf, [](double x) { return std::erf(x); }},
      {"gelu", Gelu, [](double x) { return x * Normal(x); }, -1},
      {"gelu by tanh", GeluByTanh, DefinedGeluByTanh, -1},
  };
  return all;
}

// Every 4,099th float of both signs, and those near the ends of what the functions can represent.
std::vector<float> Sample() {
  std::vector<float> all;
  for (std::uint32_t bits = 0; bits < 0x7f800000; bits += 4099) {
    all.push_back(std::bit_cast<float>(bits));
    all.push_back(-all.back());
  }
  for (int i = -2000; i <= 2000; ++i) all.push_back(static_cast<float>(i) * 0.0521f);
  return all;
}

// |got - wanted| in units of the last place of `wanted` as a float, which is at least the smallest normal
// one.
double UlpsBetween(float got, double wanted) {
  const double size = std::max<double>(std::abs(wanted), std::numeric_limits<float>::min());
  return std::abs(got - wanted) / std::exp2(std::floor(std::log2(size)) - 23);
}

TEST(Functions, AreWithinFourUnitsOfTheLastPlace) {
  const std::vector<float> x = Sample();
  std::vector<float> y(x.size());
  OnEachIsa([&](Isa) {
    for (const Case& each : Cases()) {
      each.function(x.data(), y.data(), x.size());
      double worst = 0;
      float at = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        if (x[i] < each.least) continue;
        const double wanted = each.definition(x[i]);
        if (static_cast<float>(wanted) == y[i] || (std::isnan(wanted) && std::isnan(y[i]))) continue;
        const double ulps = UlpsBetween(y[i], wanted);
        if (!(ulps <= worst)) worst = ulps, at = x[i];
      }
      EXPECT_LE(worst, 4) << each.name << " of " << at;
      testing::Test::RecordProperty(each.name, std::to_string(worst));
    }
  });
}

TEST(Functions, HaveTheirLimitsAtInfinitiesAndKeepNaN) {
  const std::vector<float> x = {kInfinity, -kInfinity, kNaN, 0.0f, -0.0f, -1.0f};
  std::vector<float> y(x.size());
  const auto of = [&](const Function& function) {
    function(x.data(), y.data(), x.size());
    return y;
  };
  OnEachIsa([&](Isa) {
    for (const Case& each : Cases()) EXPECT_TRUE(std::isnan(of(each.function)[2])) << each.name;
    EXPECT_EQ(of(Exp)[0], kInfinity);
    EXPECT_EQ(y[1], 0);
    EXPECT_EQ(of(Log)[0], kInfinity);
    EXPECT_TRUE(std::isnan(y[1]) && std::isnan(y[5]));
    EXPECT_TRUE(y[3] == -kInfinity && y[4] == -kInfinity);
    EXPECT_EQ(of(Tanh)[0], 1);
    EXPECT_EQ(y[1], -1);
    EXPECT_EQ(of(Sigmoid)[0], 1);
    EXPECT_EQ(y[1], 0);
    EXPECT_EQ(of(Cases()[4].function)[0], kInfinity);  // softplus
    EXPECT_EQ(y[1], 0);
    EXPECT_EQ(of(Cases()[7].function)[1], -1);  // elu
    EXPECT_EQ(of(Erf)[0], 1);
    EXPECT_EQ(y[1], -1);
    EXPECT_EQ(of(Gelu)[0], kInfinity);
  });
}

TEST(Functions, GiveTheSameBytesForEverySplit) {
  std::vector<float> x;
  for (int i = 0; i < 67; ++i) x.push_back(static_cast<float>(i - 30) * 0.37f);
  OnEachIsa([&](Isa) {
    for (const Case& each : Cases()) {
      std::vector<float> whole(x.size()), parts(x.size());
      each.function(x.data(), whole.data(), x.size());
      for (std::size_t size = 1; size <= 40; ++size) {
        for (std::size_t i = 0; i < x.size(); i += size)
          each.function(x.data() + i, parts.data() + i, std::min(size, x.size() - i));
        EXPECT_TRUE(SameBytes(whole, parts)) << each.name << " in parts of " << size;
      }
      std::vector<float> self = x;
      each.function(self.data(), self.data(), self.size());
      EXPECT_TRUE(SameBytes(whole, self)) << each.name << " in place";
    }
  });
}

TEST(Functions, GiveTheSameBytesWithAvx2AndAvx512) {
  const std::vector<float> x = Sample();
  ExpectSameBytesWithFusedProducts([&] {
    std::vector<float> all;
    for (const Case& each : Cases()) {
      std::vector<float> y(x.size());
      each.function(x.data(), y.data(), x.size());
      all.insert(all.end(), y.begin(), y.end());
    }
    return all;
  });
}

// Below -1 the sum of 1 and erf, or tanh, cancels.
TEST(Functions, GeluIsWithinItsBoundBelowZero) {
  std::vector<float> x;
  for (int i = 0; i < 4000; ++i) x.push_back(-0.005f * static_cast<float>(i));
  std::vector<float> exact(x.size()), by_tanh(x.size());
  OnEachIsa([&](Isa) {
    Gelu(x.data(), exact.data(), x.size());
    GeluByTanh(x.data(), by_tanh.data(), x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      EXPECT_NEAR(exact[i], x[i] * Normal(x[i]), 2e-7 * std::abs(x[i]));
      EXPECT_NEAR(by_tanh[i], DefinedGeluByTanh(x[i]), 2e-7 * std::abs(x[i]));
    }
  });
}

TEST(Functions, GeluHasGradients) {
  std::vector<float> x, dy, exact(4001), by_tanh(4001);
  for (int i = 0; i <= 4000; ++i) {
    x.push_back(0.005f * static_cast<float>(i - 2000));
    dy.push_back(0.5f + static_cast<float>(i % 3));
  }
  OnEachIsa([&](Isa) {
    GeluGrad(x.data(), dy.data(), exact.data(), x.size());
    GeluByTanhGrad(x.data(), dy.data(), by_tanh.data(), x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double v = x[i], density = std::exp(-0.5 * v * v) / std::sqrt(2 * std::numbers::pi);
      EXPECT_NEAR(exact[i], dy[i] * (Normal(v) + v * density), 1e-6 * dy[i]) << v;
      const double factor = std::sqrt(2 * std::numbers::inv_pi);
      const double tanh = std::tanh(factor * (v + 0.044715 * v * v * v));
      const double slope = factor * (1 + 3 * 0.044715 * v * v);
      EXPECT_NEAR(by_tanh[i], dy[i] * 0.5 * (1 + tanh + v * (1 - tanh * tanh) * slope), 3e-6 * dy[i]) << v;
    }
  });
}

TEST(Functions, HaveGradients) {
  std::vector<float> x, dy;
  for (int i = 0; i < 41; ++i) {
    x.push_back(static_cast<float>(i - 20) * 0.4f);
    dy.push_back(0.5f + static_cast<float>(i % 3));
  }
  OnEachIsa([&](Isa) {
    std::vector<float> soft(x.size()), log(x.size()), swish(x.size()), elu(x.size());
    SoftplusGrad(1, x.data(), dy.data(), soft.data(), x.size());
    SoftplusGrad(-1, x.data(), dy.data(), log.data(), x.size());
    SwishGrad(2, x.data(), dy.data(), swish.data(), x.size());
    EluGrad(0.7f, x.data(), dy.data(), elu.data(), x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      EXPECT_NEAR(soft[i], dy[i] / (1 + std::exp(-x[i])), 1e-6);
      EXPECT_NEAR(log[i], dy[i] / (1 + std::exp(x[i])), 1e-6);
      EXPECT_NEAR(elu[i], x[i] > 0 ? dy[i] : dy[i] * 0.7 * std::exp(x[i]), 1e-6);
      const double s = 1 / (1 + std::exp(-2.0 * x[i]));
      EXPECT_NEAR(swish[i], dy[i] * s * (1 + 2 * x[i] * (1 - s)), 1e-5);
    }
  });
}

}  // namespace
}  // namespace penstock::vec
