// Cuts a parameter into slices of whole rows.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/tensor/shape.h"

namespace penstock::plan {

// Fluid's rule: at most `parts` slices of at least `min_elements` elements, rounded up to whole rows. Returns
// the first row of each slice and, last, the number of rows: {0, 7, 13}. A parameter with an unknown extent,
// or with none, is one slice.
//
//   CutRows({13, 2048}, 2, 8192)  {0, 7, 13}
//   CutRows({3, 10000}, 2, 8192)  {0, 2, 3}
//   CutRows({8191}, 2, 8192)      {0, 8191}
std::vector<std::int64_t> CutRows(const Shape& shape, int parts, std::int64_t min_elements);

// As many slices as CutRows, whose numbers of rows differ by at most one; the first slices are the larger
// ones.
//
//   CutEvenly({5, 5000}, 4, 8192)     {0, 2, 4, 5}
//   CutEvenly({7, 4608}, 4, 8192)     {0, 3, 5, 7}
std::vector<std::int64_t> CutEvenly(const Shape& shape, int parts, std::int64_t min_elements);

// MXNet's rule: an array of at least `bound` elements is cut into one part per server; smaller arrays are one
// slice. If there are fewer rows than parts, parts without rows are left out.
//
//   CutAcross({10, 200000}, 4, 1000000)  {0, 3, 5, 8, 10}
//   CutAcross({3, 1000000}, 4, 1000000)  {0, 1, 2, 3}
//   CutAcross({100}, 4, 1000000)         {0, 100}
std::vector<std::int64_t> CutAcross(const Shape& shape, int parts, std::int64_t bound);
// The row at which part `part` (from 0) ends: rows * (part + 1) / parts, rounded.
std::int64_t PartEnd(std::int64_t rows, int parts, int part);

}  // namespace penstock::plan
