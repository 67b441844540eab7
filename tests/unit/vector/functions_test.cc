#include "framework/vector/functions.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "tests/unit/vector/ulps.h"

namespace penstock::vec {
namespace {

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
      {"log1p", Log1p, [](double x) { return std::log1p(x); }},
  };
  return all;
}

TEST(Functions, AreWithinFourUnitsOfTheLastPlace) {
  const std::vector<float> x = Sample();
  OnEachIsa([&](Isa) {
    for (const Case& each : Cases()) {
      const WorstError worst = WorstOf(each.function, each.definition, x, each.least);
      EXPECT_LE(worst.ulps, 4) << each.name << " of " << worst.at;
      testing::Test::RecordProperty(each.name, std::to_string(worst.ulps));
    }
  });
}

TEST(Functions, ReachLimitsAtInfinityAndPropagateNaN) {
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
    ExpectSpecialsOf("log1p", Log1p, [](float v) { return std::log1p(v); });
  });
}

TEST(Functions, ResultsDoNotDependOnTheSplit) {
  OnEachIsa([&](Isa) {
    for (const Case& each : Cases()) ExpectSplits(each.name, each.function);
  });
}

TEST(Functions, Avx2AndAvx512GiveTheSameBytes) {
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

TEST(Functions, GeluGradientMatchesTheDefinition) {
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

TEST(Functions, GradientsMatchTheDefinition) {
  std::vector<float> x, dy;
  for (int i = 0; i < 41; ++i) {
    x.push_back(static_cast<float>(i - 20) * 0.4f);
    dy.push_back(0.5f + static_cast<float>(i % 3));
  }
  OnEachIsa([&](Isa) {
    std::vector<float> soft(x.size()), log(x.size()), swish(x.size()), elu(x.size()), erf(x.size());
    SoftplusGrad(1, x.data(), dy.data(), soft.data(), x.size());
    SoftplusGrad(-1, x.data(), dy.data(), log.data(), x.size());
    SwishGrad(2, x.data(), dy.data(), swish.data(), x.size());
    EluGrad(0.7f, x.data(), dy.data(), elu.data(), x.size());
    ErfGrad(x.data(), dy.data(), erf.data(), x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      EXPECT_NEAR(soft[i], dy[i] / (1 + std::exp(-x[i])), 1e-6);
      EXPECT_NEAR(log[i], dy[i] / (1 + std::exp(x[i])), 1e-6);
      EXPECT_NEAR(erf[i], dy[i] * 2 * std::numbers::inv_sqrtpi * std::exp(-x[i] * x[i]), 1e-6);
      EXPECT_NEAR(elu[i], x[i] > 0 ? dy[i] : dy[i] * 0.7 * std::exp(x[i]), 1e-6);
      const double s = 1 / (1 + std::exp(-2.0 * x[i]));
      EXPECT_NEAR(swish[i], dy[i] * s * (1 + 2 * x[i] * (1 - s)), 1e-5);
    }
  });
}

}  // namespace
}  // namespace penstock::vec
