#include "framework/vector/trigonometric.h"

#include <numbers>
#include <random>

#include "tests/unit/vector/ulps.h"

namespace penstock::vec {
namespace {

struct Angle {
  const char* name;
  Function function;
  Definition definition;
  float (*scalar)(float);
};

const std::vector<Angle>& Waves() {
  static const std::vector<Angle> all = {
      {"sin", Sin, [](double x) { return std::sin(x); }, [](float x) { return std::sin(x); }},
      {"cos", Cos, [](double x) { return std::cos(x); }, [](float x) { return std::cos(x); }},
  };
  return all;
}
const std::vector<Angle>& Inverses() {
  static const std::vector<Angle> all = {
      {"asin", Asin, [](double x) { return std::asin(x); }, [](float x) { return std::asin(x); }},
      {"acos", Acos, [](double x) { return std::acos(x); }, [](float x) { return std::acos(x); }},
      {"atan", Atan, [](double x) { return std::atan(x); }, [](float x) { return std::atan(x); }},
  };
  return all;
}

// Angles of all sizes, those nearest to multiples of pi / 2, and those around the end of the vectors' range.
std::vector<float> Angles() {
  std::vector<float> x = Sample();
  for (int quarter = 1; quarter < 1'400'000; quarter += 3) {
    const auto near = static_cast<float>(quarter * (std::numbers::pi / 2));
    for (const float each : {near, std::nextafter(near, 0.0f), std::nextafter(near, 1e9f)}) x.push_back(each);
  }
  std::mt19937 generator(5);
  std::uniform_real_distribution<float> uniform(-2.2e6f, 2.2e6f);
  for (int i = 0; i < 300'000; ++i) x.push_back(uniform(generator));
  return x;
}

TEST(Trigonometric, SineAndCosineAreWithinTheirBound) {
  const std::vector<float> x = Angles();
  OnEachIsa([&](Isa) {
    for (const Angle& each : Waves()) {
      // Beyond, the C library's functions are used.
      const Function near = [&](const float* from, float* to, std::size_t n) {
        each.function(from, to, n);
        for (std::size_t i = 0; i < n; ++i) {
          if (std::abs(from[i]) <= 0x1p21f) continue;
          EXPECT_EQ(to[i], each.scalar(from[i])) << each.name << " of " << from[i];
          to[i] = static_cast<float>(each.definition(static_cast<double>(from[i])));
        }
      };
      const WorstError worst = WorstOf(near, each.definition, x);
      EXPECT_LE(worst.ulps, 0.51) << each.name << " of " << worst.at;
      testing::Test::RecordProperty(each.name, std::to_string(worst.ulps));
    }
  });
}

TEST(Trigonometric, SineAndCosineHaveTheSameBytesOnEveryInstructionSet) {
  const std::vector<float> x = Angles();
  for (const Angle& each : Waves()) {
    std::vector<float> base(x.size());
    CapIsa(Isa::kBase);
    each.function(x.data(), base.data(), x.size());
    OnEachIsa([&](Isa) {
      std::vector<float> y(x.size());
      each.function(x.data(), y.data(), x.size());
      EXPECT_TRUE(SameBytes(y, base)) << each.name;
    });
  }
}

TEST(Trigonometric, InversesAreWithinFourUnitsOfTheLastPlace) {
  const std::vector<float> x = Sample();
  OnEachIsa([&](Isa) {
    for (const Angle& each : Inverses()) {
      const WorstError worst = WorstOf(each.function, each.definition, x);
      EXPECT_LE(worst.ulps, 4) << each.name << " of " << worst.at;
      testing::Test::RecordProperty(each.name, std::to_string(worst.ulps));
    }
  });
}

TEST(Trigonometric, SpecialValuesMatchTheCLibrary) {
  OnEachIsa([&](Isa) {
    for (const auto* all : {&Waves(), &Inverses()}) {
      for (const Angle& each : *all) {
        ExpectSpecialsOf(each.name, each.function, each.scalar);
        ExpectSplits(each.name, each.function);
      }
    }
  });
}

TEST(Trigonometric, InversesHaveTheSameBytesWithAvx2AndAvx512) {
  const std::vector<float> x = Sample();
  ExpectSameBytesWithFusedProducts([&] {
    std::vector<float> all;
    for (const Angle& each : Inverses()) {
      std::vector<float> y(x.size());
      each.function(x.data(), y.data(), x.size());
      all.insert(all.end(), y.begin(), y.end());
    }
    return all;
  });
}

TEST(Trigonometric, GradientsMatchTheDefinition) {
  const std::vector<float> x = Random(1003, 0.7f), dy = Random(1003, 2);
  std::vector<float> sine(x.size()), cosine(x.size()), asine(x.size()), acosine(x.size());
  OnEachIsa([&](Isa) {
    SinGrad(x.data(), dy.data(), sine.data(), x.size());
    CosGrad(x.data(), dy.data(), cosine.data(), x.size());
    AsinGrad(x.data(), dy.data(), asine.data(), x.size());
    AcosGrad(x.data(), dy.data(), acosine.data(), x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double v = x[i];
      EXPECT_LE(UlpsBetween(sine[i], dy[i] * std::cos(v)), 1.5) << v;
      EXPECT_LE(UlpsBetween(cosine[i], -dy[i] * std::sin(v)), 1.5) << v;
      const float root = std::sqrt(1 - Times(x[i], x[i]));
      if (std::abs(v) > 1) {
        EXPECT_TRUE(std::isnan(asine[i]) && std::isnan(acosine[i])) << v;
      } else {
        EXPECT_EQ(asine[i], dy[i] / root) << v;
        EXPECT_EQ(acosine[i], -dy[i] / root) << v;
      }
    }
    std::vector<float> self = dy;
    SinGrad(x.data(), self.data(), self.data(), x.size());
    EXPECT_TRUE(SameBytes(self, sine));
  });
}

}  // namespace
}  // namespace penstock::vec
