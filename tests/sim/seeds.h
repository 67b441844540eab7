// How many seeds a simulation takes: as many as PENSTOCK_SIM_SEEDS says, else 1,000; under sanitizers, which
// slow it down tenfold, a quarter of those.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace penstock::test {

inline std::uint64_t SeedCount() {
  if (const char* text = std::getenv("PENSTOCK_SIM_SEEDS")) return std::strtoull(text, nullptr, 10);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 250;
#else
  return 1000;
#endif
}

}  // namespace penstock::test
