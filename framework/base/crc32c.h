// CRC-32C (Castagnoli), by the processor's instruction where there is one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

// Continues `crc` (0 at the start) over `size` bytes.
std::uint32_t Crc32c(std::uint32_t crc, const void* data, std::size_t size);
// The CRC of two pieces of memory end to end, from the CRC of each and the size of the second, without
// reading either: some hundred nanoseconds.
//
//   Crc32cCombine(Crc32c(0, a, 10), Crc32c(0, b, 20), 20) == Crc32c(Crc32c(0, a, 10), b, 20)
std::uint32_t Crc32cCombine(std::uint32_t first, std::uint32_t second, std::size_t second_size);
// As Crc32c, by table, on any processor; for tests.
std::uint32_t Crc32cPortable(std::uint32_t crc, const void* data, std::size_t size);

}  // namespace penstock
