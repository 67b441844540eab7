// The rule that cuts variables into chunks, the unit of merge, update and version. The plan prints the
// result; pservers, which may run programs without a plan, apply the same rule.
#pragma once

#include <algorithm>
#include <cstdint>

namespace penstock {

inline constexpr std::int64_t kChunkBytes = 1 << 20;

// The number of rows in each chunk of `rows` rows of `row_bytes` bytes, except the last, which has the rest:
// as many as fit in `chunk_bytes`, at least one.
//
//   ChunkRows(1000, 4000)  262
inline std::int64_t ChunkRows(std::int64_t rows, std::int64_t row_bytes,
                              std::int64_t chunk_bytes = kChunkBytes) {
  if (rows <= 1) return rows;
  return std::clamp<std::int64_t>(chunk_bytes / std::max<std::int64_t>(1, row_bytes), 1, rows);
}

}  // namespace penstock
