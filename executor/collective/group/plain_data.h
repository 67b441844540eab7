// Copies plain data that ranks exchange: elements, and texts in arrays of a fixed size.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

namespace penstock::collective {

// Does nothing if both are the same.
inline void CopyBytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

// Truncates what does not fit.
template <std::size_t kSize>
void WriteText(char (&to)[kSize], std::string_view text) {
  const std::size_t size = std::min(text.size(), kSize - 1);
  if (size > 0) std::memcpy(to, text.data(), size);
  to[size] = '\0';
}

// Never reads beyond the array, whatever another rank wrote there.
template <std::size_t kSize>
std::string ReadText(const char (&from)[kSize]) {
  return std::string(from, strnlen(from, kSize));
}

}  // namespace penstock::collective
