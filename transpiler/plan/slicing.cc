#include "transpiler/plan/slicing.h"

#include <algorithm>

namespace penstock::plan {
namespace {

std::int64_t CeilDiv(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t RowsOf(const Shape& shape) { return shape.rank() == 0 ? 1 : shape[0]; }

bool HasNoElement(const Shape& shape) { return shape.Count() <= 0 || shape.RowWidth() <= 0; }

std::vector<std::int64_t> Uncut(const Shape& shape) { return {0, std::max<std::int64_t>(RowsOf(shape), 0)}; }

// The number of slices of at least `min_elements` elements, at most `parts`.
std::int64_t SlicesWanted(const Shape& shape, int parts, std::int64_t min_elements) {
  return std::min<std::int64_t>(parts, std::max<std::int64_t>(1, shape.Count() / min_elements));
}

}  // namespace

std::vector<std::int64_t> CutRows(const Shape& shape, int parts, std::int64_t min_elements) {
  if (HasNoElement(shape)) return Uncut(shape);
  const std::int64_t rows = RowsOf(shape);
  const std::int64_t wanted = SlicesWanted(shape, parts, min_elements);
  const std::int64_t rows_each = CeilDiv(CeilDiv(shape.Count(), wanted), shape.RowWidth());
  std::vector<std::int64_t> bounds;
  for (std::int64_t begin = 0; begin < rows; begin += rows_each) bounds.push_back(begin);
  bounds.push_back(rows);
  return bounds;
}

std::vector<std::int64_t> CutEvenly(const Shape& shape, int parts, std::int64_t min_elements) {
  if (HasNoElement(shape)) return Uncut(shape);
  const std::int64_t rows = RowsOf(shape);
  const std::int64_t slices = std::min(SlicesWanted(shape, parts, min_elements), rows);
  std::vector<std::int64_t> bounds = {0};
  for (std::int64_t i = 0; i < slices; ++i) {
    bounds.push_back(bounds.back() + rows / slices + (i < rows % slices ? 1 : 0));
  }
  return bounds;
}

std::int64_t PartEnd(std::int64_t rows, int parts, int part) {
  return (2 * rows * (part + 1) + parts) / (2 * static_cast<std::int64_t>(parts));
}

std::vector<std::int64_t> CutAcross(const Shape& shape, int parts, std::int64_t bound) {
  if (HasNoElement(shape) || shape.Count() < bound) return Uncut(shape);
  std::vector<std::int64_t> bounds = {0};
  for (int part = 0; part < parts; ++part) {
    const std::int64_t end = PartEnd(RowsOf(shape), parts, part);
    if (end > bounds.back()) bounds.push_back(end);
  }
  return bounds;
}

}  // namespace penstock::plan
