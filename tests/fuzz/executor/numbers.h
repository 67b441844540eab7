// Limits of a search, from environment variables.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <thread>

namespace penstock::fuzz {

inline std::uint64_t NumberOf(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

inline int Processes() { return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 8); }

}  // namespace penstock::fuzz
