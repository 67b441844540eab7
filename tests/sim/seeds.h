// The number of seeds of a simulation: PENSTOCK_SIM_SEEDS, or by default 1,000; a quarter of that under
// sanitizers, which are ten times slower.
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
