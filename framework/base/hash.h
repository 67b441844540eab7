// FNV-1a, 64 bits: for names, fingerprints and contracts. The same on every machine and in every process.
#pragma once

#include <cstdint>
#include <string_view>

namespace penstock {

constexpr std::uint64_t kFnvOffset = 14695981039346656037ull;

constexpr std::uint64_t Fnv1a64(std::string_view bytes, std::uint64_t seed = kFnvOffset) {
  std::uint64_t hash = seed;
  for (const char c : bytes) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 1099511628211ull;
  }
  return hash;
}

}  // namespace penstock
