// How many seeds a simulation takes: under sanitizers, which slow it down tenfold, a quarter.
#pragma once

#include <cstdint>

namespace penstock::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kSeeds = 250;
#else
constexpr std::uint64_t kSeeds = 1000;
#endif

}  // namespace penstock::test
