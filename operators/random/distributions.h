// Distributions for RandomFill (random_fill.h): random words converted to numbers.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "framework/op/kernel.h"
#include "operators/common/philox.h"

namespace penstock {

inline constexpr char kSeedDoc[] = R"(
Element i depends on seed and i only, and, if Out is persistable, on the op's place among the ops of the block
that draw random numbers: not on the shape, the slice, names or the number of threads. An Out of selected rows
lists none of them; in a table sharded by id, each row has these values from its first use on. Seed 0
takes a new seed from the process at every run. The numbers are not those that Fluid draws from the same
seed.)";

// Returns a number in [0, 1) with 24 bits, which a float holds exactly, so it never rounds to 1.
inline double Unit(std::uint32_t word) { return static_cast<double>(word >> 8) * 0x1p-24; }

// Computes two standard normal numbers from two words. G. E. P. Box, M. E. Muller: "A note on the generation
// of random normal deviates", 1958.
inline void NormalPair(std::uint32_t a, std::uint32_t b, double* out) {
  const double radius = std::sqrt(-2.0 * std::log((static_cast<double>(a) + 1.0) * 0x1p-32));
  const double angle = 2.0 * std::numbers::pi * static_cast<double>(b) * 0x1p-32;
  out[0] = radius * std::cos(angle);
  out[1] = radius * std::sin(angle);
}

inline std::array<double, 4> FourNormals(const PhiloxWords& words) {
  std::array<double, 4> normals;
  NormalPair(words[0], words[1], normals.data());
  NormalPair(words[2], words[3], normals.data() + 2);
  return normals;
}

class Uniform {
 public:
  Status Read(const KernelSetup& k) {
    min_ = k.Attr<float>("min");
    span_ = static_cast<double>(k.Attr<float>("max")) - min_;
    diagonal_count_ = k.Attr<std::int32_t>("diag_num");
    diagonal_step_ = k.Attr<std::int32_t>("diag_step");
    diagonal_value_ = k.Attr<float>("diag_val");
    if (span_ < 0)
      return k.Error("min (", k.Attr<float>("min"), ") must be at most max (", k.Attr<float>("max"), ")");
    return OkStatus();
  }
  std::array<double, 4> Draw(std::uint64_t key, std::uint64_t block) const {
    const PhiloxWords words = PhiloxBlock(key, block);
    return {At(words[0]), At(words[1]), At(words[2]), At(words[3])};
  }
  // Sets the elements of the whole's diagonal that lie in `out`, which begins at element `begin` of the
  // whole.
  template <typename T>
  void Finish(T* out, std::int64_t count, std::int64_t begin) const {
    const std::int64_t step = std::int64_t{diagonal_step_} + 1;
    for (std::int64_t i = std::max<std::int64_t>(0, (begin + step - 1) / step);
         i < diagonal_count_ && i * step < begin + count; ++i)
      out[i * step - begin] = static_cast<T>(diagonal_value_);
  }

 private:
  double At(std::uint32_t word) const { return min_ + span_ * Unit(word); }
  double min_ = -1, span_ = 2;
  std::int32_t diagonal_count_ = 0, diagonal_step_ = 0;
  float diagonal_value_ = 1;
};

class Gaussian {
 public:
  Status Read(const KernelSetup& k) {
    mean_ = k.Attr<float>("mean");
    std_ = k.Attr<float>("std");
    return OkStatus();
  }
  std::array<double, 4> Draw(std::uint64_t key, std::uint64_t block) const {
    std::array<double, 4> four = FourNormals(PhiloxBlock(key, block));
    for (double& value : four) value = mean_ + std_ * value;
    return four;
  }
  template <typename T>
  void Finish(T*, std::int64_t, std::int64_t) const {}

 protected:
  double mean_ = 0, std_ = 1;
};

}  // namespace penstock
