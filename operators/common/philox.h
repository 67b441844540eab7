// Philox4x32-10: four random words from a key and a counter, without state. Element i of a random tensor
// therefore depends only on the seed and on i, and a slice draws the same elements that the whole would have
// there.
//
// J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#pragma once

#include <array>
#include <cstdint>

namespace penstock {

using PhiloxWords = std::array<std::uint32_t, 4>;

constexpr PhiloxWords Philox(std::uint64_t key, PhiloxWords counter) {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  auto key0 = static_cast<std::uint32_t>(key);
  auto key1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter[0];
    const std::uint64_t product1 = kMultiplier1 * counter[2];
    counter = {
        static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key0, static_cast<std::uint32_t>(product1),
        static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key1, static_cast<std::uint32_t>(product0)};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return counter;
}

// Returns words 4 * block ... 4 * block + 3 of the stream of `seed`. A different `attempt` gives other words
// for the same position.
constexpr PhiloxWords PhiloxBlock(std::uint64_t seed, std::uint64_t block, std::uint32_t attempt = 0) {
  return Philox(seed,
                {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), attempt, 0});
}

}  // namespace penstock
