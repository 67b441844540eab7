#include "framework/vector/activations.h"

#include "tests/unit/vector/ulps.h"

namespace penstock::vec {
namespace {

// The functions as defined, in float and in double.
template <typename T>
struct DefinedIn {
  static T Softplus(T x) { return std::max(x, T{0}) + std::log1p(std::exp(-std::abs(x))); }
  static T Selu(T x) { return T{1.25} * (x > 0 ? x : T{1.5} * std::expm1(x)); }
  static T SoftRelu(T x, T bound) { return Softplus(std::min(std::max(x, -bound), bound)); }
  static T MishArgument(T x, T bound) { return x > bound ? x : x < -bound ? std::exp(x) : Softplus(x); }
  static T Mish(T x, T bound) { return x * std::tanh(MishArgument(x, bound)); }
  static T MishSlope(T x, T bound) {
    const T p = MishArgument(x, bound), tanh = std::tanh(p);
    return tanh + x * (1 - tanh * tanh) * -std::expm1(-p);
  }
  static T ScaledTanh(T x) { return T{1.75} * std::tanh(T{0.5} * x); }
};
// Its difference cancels in double, too, where a double is not long enough.
double DefinedTanhShrink(double x) {
  return std::abs(x) < 1e-3 ? x * x * x / 3 * (1 - 0.4 * x * x) : x - std::tanh(x);
}

struct Smooth {
  std::string name;
  Function function;
  Definition definition;
  std::function<float(float)> scalar;
  double ulps;
  float least = -kInfinity;  // the bound holds from here on
};

std::vector<Smooth> Smooths() {
  std::vector<Smooth> all = {
      {"selu", [](auto x, auto y, auto n) { Selu(1.25f, 1.5f, x, y, n); }, DefinedIn<double>::Selu,
       DefinedIn<float>::Selu, 5},
      {"stanh", [](auto x, auto y, auto n) { ScaledTanh(0.5f, 1.75f, x, y, n); },
       DefinedIn<double>::ScaledTanh, DefinedIn<float>::ScaledTanh, 4.5},
      {"tanh_shrink", TanhShrink, DefinedTanhShrink, [](float x) { return x - std::tanh(x); }, 0.6},
  };
  for (const float bound : {0.0f, 1.0f, 40.0f, 200.0f}) {
    all.push_back({"soft_relu " + std::to_string(bound),
                   [=](auto x, auto y, auto n) { SoftRelu(bound, x, y, n); },
                   [=](double x) { return DefinedIn<double>::SoftRelu(x, bound); },
                   [=](float x) { return DefinedIn<float>::SoftRelu(x, bound); }, 4});
  }
  for (const float bound : {20.0f, 50.0f, 3.0f, 0.0f, -1.0f}) {
    all.push_back({"mish " + std::to_string(bound), [=](auto x, auto y, auto n) { Mish(bound, x, y, n); },
                   [=](double x) { return DefinedIn<double>::Mish(x, bound); },
                   [=](float x) { return DefinedIn<float>::Mish(x, bound); }, 6, -87});
  }
  return all;
}

TEST(Activations, AreWithinTheirBounds) {
  const std::vector<float> x = Sample();
  OnEachIsa([&](Isa) {
    for (const Smooth& each : Smooths()) {
      const WorstError worst = WorstOf(each.function, each.definition, x, each.least);
      EXPECT_LE(worst.ulps, each.ulps) << each.name << " of " << worst.at;
      testing::Test::RecordProperty(each.name, std::to_string(worst.ulps));
    }
  });
}

TEST(Activations, SpecialValuesMatchTheScalarFunctions) {
  OnEachIsa([&](Isa) {
    for (const Smooth& each : Smooths()) {
      ExpectSplits(each.name, each.function);
      // Results that a float function rounds to 0 may be other than 0.
      if (each.name == "tanh_shrink") continue;
      ExpectSpecialsOf(each.name, each.function, each.scalar);
    }
    const std::vector<float> x = {0.0f, -0.0f, kInfinity, -kInfinity, kNaN, 1e-40f, -1e-40f};
    std::vector<float> y(x.size());
    TanhShrink(x.data(), y.data(), x.size());
    for (const std::size_t zero : {0, 1, 5, 6})
      EXPECT_TRUE(y[zero] == 0 && !std::signbit(y[zero])) << x[zero];
    EXPECT_EQ(y[2], kInfinity);
    EXPECT_EQ(y[3], -kInfinity);
    EXPECT_TRUE(std::isnan(y[4]));
  });
}

TEST(Activations, Avx2AndAvx512GiveTheSameBytes) {
  const std::vector<float> x = Sample();
  ExpectSameBytesWithFusedProducts([&] {
    std::vector<float> all;
    for (const Smooth& each : Smooths()) {
      std::vector<float> y(x.size());
      each.function(x.data(), y.data(), x.size());
      all.insert(all.end(), y.begin(), y.end());
    }
    return all;
  });
}

TEST(Activations, GradientsMatchTheDefinition) {
  std::vector<float> x = Random(2001, 4);
  for (int i = -300; i <= 300; ++i) x.push_back(0.31f * static_cast<float>(i));
  const std::vector<float> dy = Random(x.size(), 2);
  std::vector<float> dx(x.size());
  const auto check = [&](const char* name, const auto& gradient, const auto& slope, double error) {
    gradient(x.data(), dy.data(), dx.data(), x.size());
    for (std::size_t i = 0; i < x.size(); ++i)
      EXPECT_NEAR(dx[i], dy[i] * slope(static_cast<double>(x[i])), error * std::abs(dy[i]))
          << name << " " << x[i];
    std::vector<float> self = dy;
    gradient(x.data(), self.data(), self.data(), x.size());
    EXPECT_TRUE(SameBytes(self, dx)) << name << " in place";
  };
  OnEachIsa([&](Isa) {
    for (const float bound : {20.0f, 50.0f, 3.0f, 0.0f, -1.0f}) {
      check(
          "mish", [=](auto... args) { MishGrad(bound, args...); },
          [=](double v) { return DefinedIn<double>::MishSlope(v, bound); }, 1e-6);
    }
    check(
        "stanh", [](auto... args) { ScaledTanhGrad(0.5f, 1.75f, args...); },
        [](double v) { return 0.5 * 1.75 * (1 - std::tanh(0.5 * v) * std::tanh(0.5 * v)); }, 1e-6);
    check(
        "tanh_shrink", TanhShrinkGrad, [](double v) { return std::tanh(v) * std::tanh(v); }, 1e-6);
    check(
        "selu", [](auto... args) { SeluGrad(1.25f, 1.5f, args...); },
        [](double y) { return y > 0 ? 1.25 : y + 1.25 * 1.5; }, 2e-5);
  });
}

TEST(Activations, GradientsPropagateNaNAndMatchScalarSpecials) {
  OnEachIsa([&](Isa) {
    for (const float bound : {20.0f, 3.0f}) {
      const std::vector<float> x = {kNaN, kInfinity, -kInfinity, 0.0f};
      const std::vector<float> dy(x.size(), 1);
      std::vector<float> dx(x.size());
      MishGrad(bound, x.data(), dy.data(), dx.data(), x.size());
      for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_TRUE(std::isnan(DefinedIn<float>::MishSlope(x[i], bound)));
        EXPECT_TRUE(std::isnan(dx[i])) << x[i] << " beyond " << bound;
      }
      SeluGrad(1, 1, x.data(), dy.data(), dx.data(), x.size());
      EXPECT_TRUE(std::isnan(dx[0]) && dx[1] == 1 && dx[2] == -kInfinity && dx[3] == 1);
      SoftReluGrad(bound, x.data(), dy.data(), dx.data(), x.size());
      EXPECT_TRUE(std::isnan(dx[0]) && dx[1] == 0 && dx[2] == 0 && dx[3] == 0);
    }
  });
}

// The gradient reads the result of SoftRelu, and must see that it was clipped.
TEST(Activations, SoftReluHasNoGradientWhereItClips) {
  std::vector<float> x = Random(500, 3), y(500), dx(500);
  const std::vector<float> dy = Random(501, 2);
  OnEachIsa([&](Isa) {
    for (const float bound : {0.0f, 0.7f, 1.0f, 2.0f, 3.3f, 40.0f}) {
      for (std::size_t i = 0; i < 4; ++i) x[i] = i % 2 == 0 ? bound : -bound;
      SoftRelu(bound, x.data(), y.data(), x.size());
      SoftReluGrad(bound, y.data(), dy.data(), dx.data(), x.size());
      for (std::size_t i = 0; i < x.size(); ++i) {
        const bool clips = std::abs(x[i]) >= bound;
        const double slope = 1 / (1 + std::exp(-static_cast<double>(x[i])));
        EXPECT_NEAR(dx[i], clips ? 0 : dy[i] * slope, 2e-6 * std::abs(dy[i])) << x[i] << " in " << bound;
      }
    }
  });
}

}  // namespace
}  // namespace penstock::vec
