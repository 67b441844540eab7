// Runs a test on every instruction set that the processor has.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "framework/vector/isa.h"

namespace penstock::vec {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

inline std::string NameOf(Isa isa) {
  constexpr const char* kNames[] = {"base", "sse4", "avx2", "avx512"};
  return kNames[static_cast<std::size_t>(isa)];
}

// Those that the processor has, in ascending order.
inline std::vector<Isa> IsasOfProcessor() {
  std::vector<Isa> all;
  for (const Isa isa : {Isa::kBase, Isa::kSse4, Isa::kAvx2, Isa::kAvx512}) {
    CapIsa(isa);
    if (IsaInUse() == isa) all.push_back(isa);
  }
  return all;
}

template <typename Test>
void OnEachIsa(Test test) {
  for (const Isa isa : IsasOfProcessor()) {
    CapIsa(isa);
    const testing::ScopedTrace trace(__FILE__, __LINE__, NameOf(isa));
    test(isa);
  }
  CapIsa(Isa::kAvx512);
}

// Numbers of a normal distribution, which depend on the arguments alone.
inline std::vector<float> Random(std::size_t count, float deviation, float mean = 0) {
  std::mt19937 generator(static_cast<unsigned>(count));
  std::normal_distribution<float> normal(mean, deviation);
  std::vector<float> all(count);
  for (float& each : all) each = normal(generator);
  return all;
}

// The product, rounded. In an expression a compiler may fuse it with a sum.
inline float Times(float a, float b) {
  volatile float product = a * b;
  return product;
}

inline bool SameBytes(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// make() on AVX2 and on AVX-512 gives the same bytes, where the processor has both.
template <typename Make>
void ExpectSameBytesWithFusedProducts(Make make) {
  if (IsasOfProcessor().back() != Isa::kAvx512) GTEST_SKIP() << "the processor has no AVX-512";
  CapIsa(Isa::kAvx2);
  const std::vector<float> narrow = make();
  CapIsa(Isa::kAvx512);
  EXPECT_TRUE(SameBytes(narrow, make()));
}

}  // namespace penstock::vec
