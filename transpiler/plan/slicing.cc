#include "transpiler/plan/slicing.h"

#include <algorithm>

namespace penstock {
namespace {

constexpr std::int64_t kChunkBytes = 1 << 20;

std::int64_t CeilDiv(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

std::vector<std::int64_t> CutRows(const Shape& shape, int parts, std::int64_t min_elements) {
  const std::int64_t rows = shape.rank() == 0 ? 1 : shape[0];
  const std::int64_t count = shape.Count();
  const std::int64_t width = shape.RowWidth();
  if (count <= 0 || width <= 0) return {0, std::max<std::int64_t>(rows, 0)};

  const std::int64_t wanted = std::min<std::int64_t>(parts, std::max<std::int64_t>(1, count / min_elements));
  const std::int64_t rows_each = CeilDiv(CeilDiv(count, wanted), width);
  std::vector<std::int64_t> bounds;
  for (std::int64_t begin = 0; begin < rows; begin += rows_each) bounds.push_back(begin);
  bounds.push_back(rows);
  return bounds;
}

std::int64_t ChunkRows(std::int64_t rows, std::int64_t row_bytes) {
  return std::clamp<std::int64_t>(kChunkBytes / std::max<std::int64_t>(1, row_bytes), 1, rows);
}

}  // namespace penstock
