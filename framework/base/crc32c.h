// CRC-32C (Castagnoli), computed by the processor's instruction if it has one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

// Continues `crc` (0 at the start) over `size` bytes.
std::uint32_t Crc32c(std::uint32_t crc, const void* data, std::size_t size);
// Returns the CRC of two concatenated pieces of memory, given the CRC of each and the size of the second.
// Reads neither piece; takes a few hundred nanoseconds.
//
//   Crc32cCombine(Crc32c(0, a, 10), Crc32c(0, b, 20), 20) == Crc32c(Crc32c(0, a, 10), b, 20)
std::uint32_t Crc32cCombine(std::uint32_t first, std::uint32_t second, std::size_t second_size);
// Computes the same CRC from a table, on any processor; for tests.
std::uint32_t Crc32cPortable(std::uint32_t crc, const void* data, std::size_t size);

}  // namespace penstock
