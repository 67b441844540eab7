#include "framework/base/crc32c.h"

#include <array>
#include <cstring>

namespace penstock {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78u;  // reflected

constexpr std::array<std::uint32_t, 256> MakeTable() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? (crc >> 1) ^ kPolynomial : crc >> 1;
    table[i] = crc;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> kTable = MakeTable();

#if defined(__x86_64__)
// One instruction has a latency of three cycles, but nothing else here needs the processor: 5 to 8 GB/s,
// several times what the network gives.
__attribute__((target("sse4.2"))) std::uint32_t Crc32cSse42(std::uint32_t crc, const void* data,
                                                            std::size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  std::uint64_t value = ~crc;
  for (; size >= 8; size -= 8, bytes += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes, 8);
    value = __builtin_ia32_crc32di(value, word);
  }
  auto rest = static_cast<std::uint32_t>(value);
  for (; size > 0; --size, ++bytes) rest = __builtin_ia32_crc32qi(rest, *bytes);
  return ~rest;
}
#endif

}  // namespace

std::uint32_t Crc32cPortable(std::uint32_t crc, const void* data, std::size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  crc = ~crc;
  for (std::size_t i = 0; i < size; ++i) crc = kTable[(crc ^ bytes[i]) & 0xff] ^ (crc >> 8);
  return ~crc;
}

std::uint32_t Crc32c(std::uint32_t crc, const void* data, std::size_t size) {
#if defined(__x86_64__)
  static const bool fast = __builtin_cpu_supports("sse4.2") != 0;
  if (fast) return Crc32cSse42(crc, data, size);
#endif
  return Crc32cPortable(crc, data, size);
}

}  // namespace penstock
