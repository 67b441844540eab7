// Compares functions of floats with their definitions in double precision.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tests/unit/vector/each_isa.h"

namespace penstock::vec {

using Function = std::function<void(const float*, float*, std::size_t)>;
using Definition = std::function<double(double)>;

// Every 4,099th float of both signs, and those near the ends of what the functions can represent.
inline std::vector<float> Sample() {
  std::vector<float> all;
  for (std::uint32_t bits = 0; bits < 0x7f800000; bits += 4099) {
    all.push_back(std::bit_cast<float>(bits));
    all.push_back(-all.back());
  }
  for (int i = -2000; i <= 2000; ++i) all.push_back(static_cast<float>(i) * 0.0521f);
  return all;
}

// NaN, infinities, zeros, the smallest and the largest numbers, of both signs.
inline std::vector<float> SpecialNumbers() {
  using Limits = std::numeric_limits<float>;
  std::vector<float> all = {kNaN};
  for (const float x : {0.0f, Limits::denorm_min(), Limits::min(), 1e-4f, 0.3f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f,
                        20.5f, 100.0f, 8388609.0f, 1e30f, Limits::max(), kInfinity}) {
    all.push_back(x);
    all.push_back(-x);
  }
  return all;
}

// |got - wanted| in units of the last place of `wanted` as a float, which is at least the smallest normal
// one.
inline double UlpsBetween(float got, double wanted) {
  const double size = std::max<double>(std::abs(wanted), std::numeric_limits<float>::min());
  return std::abs(got - wanted) / std::exp2(std::floor(std::log2(size)) - 23);
}

// The largest error of `function` over x from `least` on.
struct WorstError {
  double ulps = 0;
  float at = 0;
};
inline WorstError WorstOf(const Function& function, const Definition& definition, const std::vector<float>& x,
                          float least = -kInfinity) {
  std::vector<float> y(x.size());
  function(x.data(), y.data(), x.size());
  WorstError worst;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] < least) continue;
    const double wanted = definition(x[i]);
    if (static_cast<float>(wanted) == y[i] || (std::isnan(wanted) && std::isnan(y[i]))) continue;
    const double ulps = UlpsBetween(y[i], wanted);
    if (!(ulps <= worst.ulps)) worst = {ulps, x[i]};
  }
  return worst;
}

// Expects of a function, for NaN, infinities, zeros and where it overflows, exactly what `scalar` gives.
inline void ExpectSpecialsOf(const std::string& name, const Function& function,
                             const std::function<float(float)>& scalar) {
  const std::vector<float> x = SpecialNumbers();
  std::vector<float> y(x.size());
  function(x.data(), y.data(), x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float wanted = scalar(x[i]);
    EXPECT_EQ(std::isnan(y[i]), std::isnan(wanted)) << name << " of " << x[i] << " is " << y[i];
    EXPECT_EQ(std::isinf(y[i]), std::isinf(wanted)) << name << " of " << x[i] << " is " << y[i];
    if (std::isinf(wanted) || wanted == 0) {
      EXPECT_EQ(y[i], wanted) << name << " of " << x[i];
      EXPECT_EQ(std::signbit(y[i]), std::signbit(wanted)) << name << " of " << x[i];
    }
  }
}

// Expects the same bytes however an array is split, and in place.
inline void ExpectSplits(const std::string& name, const Function& function) {
  std::vector<float> x;
  for (int i = 0; i < 67; ++i) x.push_back(static_cast<float>(i - 30) * 0.37f);
  std::vector<float> whole(x.size()), parts(x.size()), self = x;
  function(x.data(), whole.data(), x.size());
  for (std::size_t size = 1; size <= 40; ++size) {
    for (std::size_t i = 0; i < x.size(); i += size)
      function(x.data() + i, parts.data() + i, std::min(size, x.size() - i));
    EXPECT_TRUE(SameBytes(whole, parts)) << name << " in parts of " << size;
  }
  function(self.data(), self.data(), self.size());
  EXPECT_TRUE(SameBytes(whole, self)) << name << " in place";
}

}  // namespace penstock::vec
