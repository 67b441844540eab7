// Seeds for random ops whose own seed is 0: from the machine, unless the process was given one.
//
//   SetProcessSeed(7);                       before the first draw: the same draws in every run
//   ProcessRandom().Next()
//
// Thread-safe. Programs in which every random op has a seed never come here.
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

// Lives forever.
RandomSource& ProcessRandom();
void SetProcessSeed(std::uint64_t seed);

}  // namespace penstock
