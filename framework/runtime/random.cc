#include "framework/runtime/random.h"

#include <random>

namespace penstock {
namespace {

std::uint64_t SeedFromMachine() {
  std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 32) | device();
}

}  // namespace

// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
std::uint64_t RandomSource::Next() {
  constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15ull;
  std::uint64_t z = state_.fetch_add(kStep) + kStep;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  z ^= z >> 31;
  return z == 0 ? 1 : z;
}

RandomSource& ProcessRandom() {
  static RandomSource& source = *new RandomSource(SeedFromMachine());
  return source;
}

void SetProcessSeed(std::uint64_t seed) { ProcessRandom().Reseed(seed); }

}  // namespace penstock
