// Seeds for random ops whose own seed is 0. They differ between runs unless SetProcessSeed was called.
//
//   SetProcessSeed(7);          // call before the first draw: every run then draws the same numbers
//   ProcessRandom().Next()
//
// Thread-safe. Not used by programs in which every random op has a seed.
#pragma once

#include <atomic>
#include <cstdint>

namespace penstock {

class RandomSource {
 public:
  explicit RandomSource(std::uint64_t seed) : state_(seed) {}
  std::uint64_t Next();  // never 0
  void Reseed(std::uint64_t seed) { state_ = seed; }

 private:
  std::atomic<std::uint64_t> state_;
};

// Never destroyed.
RandomSource& ProcessRandom();
void SetProcessSeed(std::uint64_t seed);

}  // namespace penstock
