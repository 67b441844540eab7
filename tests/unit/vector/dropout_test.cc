#include "framework/vector/dropout.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "tests/unit/vector/each_isa.h"

namespace penstock::vec {
namespace {

// The mask of the standard library's distribution.
std::vector<std::uint8_t> MaskOf(std::uint32_t seed, float probability, std::size_t count) {
  std::minstd_rand generator(seed);
  std::uniform_real_distribution<float> uniform(0, 1);
  std::vector<std::uint8_t> mask(count);
  for (std::uint8_t& each : mask) each = uniform(generator) < probability ? 0 : 1;
  return mask;
}

TEST(Dropout, MatchesTheStandardLibrarysGenerator) {
  const std::size_t count = 100'003;
  std::vector<float> x = Random(count, 1), y(count), dx(count);
  x[5] = x[6] = x[7] = x[8] = std::numeric_limits<float>::quiet_NaN();
  OnEachIsa([&](Isa) {
    for (const std::uint32_t seed : {1u, 7u, 123456789u, 2147483646u}) {
      for (const float probability : {0.0f, 0.1f, 0.5f, 0.999f, 1.0f}) {
        const std::vector<std::uint8_t> wanted = MaskOf(seed, probability, count);
        std::vector<std::uint8_t> mask(count);
        Dropout(seed, probability, 1.25f, x.data(), mask.data(), y.data(), count);
        EXPECT_EQ(mask, wanted) << seed << " " << probability;
        DropoutGrad(mask.data(), 1.25f, x.data(), dx.data(), count);
        EXPECT_TRUE(SameBytes(y, dx));
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < count; ++i) {
          const float kept = mask[i] != 0 ? x[i] * 1.25f : 0;
          if (y[i] != kept && !(std::isnan(y[i]) && std::isnan(kept))) ++wrong;
        }
        EXPECT_EQ(wrong, 0u);
      }
    }
  });
}

TEST(Dropout, SupportsAnyRange) {
  const std::vector<std::uint8_t> wanted = MaskOf(42, 0.3f, 80);
  OnEachIsa([&](Isa) {
    for (std::size_t begin = 0; begin < 40; ++begin) {
      std::minstd_rand generator(42);
      std::uint32_t state = 42;
      for (std::size_t i = 0; i < begin; ++i) state = static_cast<std::uint32_t>(generator());
      for (std::size_t count = 0; count < 40; ++count) {
        std::vector<float> y(count, 1.0f);
        std::vector<std::uint8_t> mask(count + 1, 9);
        Dropout(state, 0.3f, 1, y.data(), mask.data(), y.data(), count);
        EXPECT_TRUE(
            std::equal(mask.begin(), mask.end() - 1, wanted.begin() + static_cast<std::ptrdiff_t>(begin)));
        EXPECT_EQ(mask.back(), 9);
        EXPECT_TRUE(std::equal(y.begin(), y.end(), mask.begin()));
      }
    }
  });
}

}  // namespace
}  // namespace penstock::vec
