// CRC-32C (Castagnoli), by the processor's instruction where there is one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

// Continues `crc` (0 at the start) over `size` bytes.
std::uint32_t Crc32c(std::uint32_t crc, const void* data, std::size_t size);
// The same by table, on any processor; for tests.
std::uint32_t Crc32cPortable(std::uint32_t crc, const void* data, std::size_t size);

}  // namespace penstock
