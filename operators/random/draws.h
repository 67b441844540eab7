// Random numbers for ops that draw one after the other. Draw i of a run depends only on the seed and on i.
//
//   draws_.Prepare(k);                       // reads attribute seed
//   draws_.Start();                          // in each Run
//   draws_.Below(6)                          // 0 ... 5
#pragma once

#include <cstdint>
#include <utility>

#include "framework/op/kernel.h"
#include "framework/runtime/random.h"
#include "operators/common/philox.h"

namespace penstock {

class Draws {
 public:
  void Prepare(const KernelSetup& k) {
    // Fluid's seeds are ints; the sign is part of the seed.
    seed_ = static_cast<std::uint64_t>(static_cast<std::int64_t>(k.Attr<std::int32_t>("seed")));
    PrepareSource(k);
  }
  // For ops that get their seed when they run.
  void PrepareSource(const KernelSetup& k) {
    source_ = k.services().random != nullptr ? k.services().random : &ProcessRandom();
  }
  void Start() { StartFrom(seed_ != 0 ? seed_ : source_->Next()); }
  void StartFrom(std::uint64_t key) {
    key_ = key;
    next_ = 0;
  }
  std::uint64_t Word() {
    const std::uint64_t at = next_++;
    if (at % 2 == 0) words_ = PhiloxBlock(key_, at / 2);
    return std::uint64_t{words_[at % 2 * 2]} << 32 | words_[at % 2 * 2 + 1];
  }
  // Returns an integer in [0, count). `count` must be above 0.
  std::uint64_t Below(std::uint64_t count) {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(Word()) * count) >> 64);
  }
  // Returns a number in [0, 1), with 53 bits.
  double Share() { return static_cast<double>(Word() >> 11) * 0x1p-53; }
  // Sets `order` to a random permutation of 0 ... count - 1.
  template <typename Integer>
  void Shuffle(Integer* order, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) order[i] = static_cast<Integer>(i);
    for (std::int64_t i = count - 1; i > 0; --i)
      std::swap(order[i], order[Below(static_cast<std::uint64_t>(i) + 1)]);
  }

 private:
  std::uint64_t seed_ = 0, key_ = 0, next_ = 0;
  RandomSource* source_ = nullptr;
  PhiloxWords words_{};
};

}  // namespace penstock
