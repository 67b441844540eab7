// Where variables are cut into chunks, the unit of merge, update and version. The plan prints it; pservers,
// which may run programs without a plan, cut by the same rule.
#pragma once

#include <algorithm>
#include <cstdint>

namespace penstock {

inline constexpr std::int64_t kChunkBytes = 1 << 20;

// Rows of each chunk but the last, which has the rest, of `rows` rows of `row_bytes` bytes: as many as fit
// `chunk_bytes`, at least one.
//
//   ChunkRows(1000, 4000)  262
inline std::int64_t ChunkRows(std::int64_t rows, std::int64_t row_bytes,
                              std::int64_t chunk_bytes = kChunkBytes) {
  if (rows <= 1) return rows;
  return std::clamp<std::int64_t>(chunk_bytes / std::max<std::int64_t>(1, row_bytes), 1, rows);
}

}  // namespace penstock
