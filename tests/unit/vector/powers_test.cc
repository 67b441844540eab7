#include "framework/vector/powers.h"

#include "tests/unit/vector/ulps.h"

namespace penstock::vec {
namespace {

const std::vector<float>& Exponents() {
  static const std::vector<float> all = {
      0,  1,     2,     3,   4,    0.5f,  -0.5f, -1,   -2,        -3,         1.5f,        -1.7f,     0.1f,
      13, -0.0f, 1e-5f, 700, -701, 1e30f, 3e38f, kNaN, kInfinity, -kInfinity, 16777217.0f, 1.0000001f};
  return all;
}
Function PowerTo(float exponent) {
  return [exponent](const float* x, float* y, std::size_t n) { Power(exponent, x, y, n); };
}

TEST(Powers, AreWithinTheirBound) {
  const std::vector<float> x = Sample();
  OnEachIsa([&](Isa) {
    for (const float exponent : Exponents()) {
      const Definition power = [exponent](double v) { return std::pow(v, static_cast<double>(exponent)); };
      const WorstError worst = WorstOf(PowerTo(exponent), power, x);
      EXPECT_LE(worst.ulps, 0.51) << worst.at << " to " << exponent;
      testing::Test::RecordProperty("power_" + std::to_string(exponent), std::to_string(worst.ulps));
    }
  });
}

TEST(Powers, SpecialValuesMatchTheCLibrary) {
  OnEachIsa([&](Isa) {
    for (const float exponent : Exponents()) {
      const std::string name = "power " + std::to_string(exponent);
      ExpectSpecialsOf(name, PowerTo(exponent), [=](float x) { return std::pow(x, exponent); });
      ExpectSplits(name, PowerTo(exponent));
    }
  });
}

TEST(Powers, HaveTheSameBytesOnEveryInstructionSet) {
  const std::vector<float> x = Sample();
  for (const float exponent : Exponents()) {
    std::vector<float> base(x.size()), y(x.size());
    CapIsa(Isa::kBase);
    Power(exponent, x.data(), base.data(), x.size());
    // The sign of NaN is of no meaning.
    const auto no_nan = [](std::vector<float>& all) {
      std::ranges::replace_if(
          all, [](float v) { return std::isnan(v); }, 0.0f);
    };
    no_nan(base);
    OnEachIsa([&](Isa) {
      Power(exponent, x.data(), y.data(), x.size());
      no_nan(y);
      EXPECT_TRUE(SameBytes(y, base)) << exponent;
    });
  }
}

TEST(Powers, GradientsMatchTheDefinition) {
  std::vector<float> x = Random(401, 1.5f);
  for (const float special : SpecialNumbers()) x.push_back(special);
  const std::vector<float> dy = Random(x.size(), 2);
  std::vector<float> dx(x.size());
  OnEachIsa([&](Isa) {
    for (const float exponent : Exponents()) {
      PowerGrad(exponent, x.data(), dy.data(), dx.data(), x.size());
      for (std::size_t i = 0; i < x.size(); ++i) {
        const float wanted = Times(Times(dy[i], exponent), std::pow(x[i], exponent - 1));
        if (std::isnan(wanted) || std::isinf(wanted)) {
          EXPECT_TRUE(std::isnan(wanted) ? std::isnan(dx[i]) : dx[i] == wanted) << x[i] << " to " << exponent;
        } else {
          EXPECT_LE(UlpsBetween(dx[i], wanted), 2) << x[i] << " to " << exponent;
        }
      }
    }
  });
}

TEST(Powers, SquareRootsAreCorrectlyRounded) {
  const std::vector<float> x = Sample();
  std::vector<float> root(x.size()), inverse(x.size());
  OnEachIsa([&](Isa) {
    Root(x.data(), root.data(), x.size());
    InverseRoot(x.data(), inverse.data(), x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float wanted = std::sqrt(x[i]);
      if (std::isnan(wanted)) {
        EXPECT_TRUE(std::isnan(root[i]) && std::isnan(inverse[i])) << x[i];
      } else {
        EXPECT_EQ(root[i], wanted) << x[i];
        EXPECT_EQ(inverse[i], 1 / wanted) << x[i];
      }
    }
    ExpectSpecialsOf("root", Root, [](float v) { return std::sqrt(v); });
    ExpectSpecialsOf("inverse root", InverseRoot, [](float v) { return 1 / std::sqrt(v); });
  });
}

}  // namespace
}  // namespace penstock::vec
