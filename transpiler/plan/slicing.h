// How a parameter is cut into slices of whole rows.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/tensor/shape.h"

namespace penstock::plan {

// Fluid's rule, in elements: at most `parts` slices of at least `min_elements`, the width of a row respected
// by rounding up. Returns the first row of each slice and, last, the number of rows: {0, 7, 13}. A row is
// never cut; a parameter of unknown or no extent is one slice.
//
//   CutRows({13, 2048}, 2, 8192)  {0, 7, 13}
//   CutRows({3, 10000}, 2, 8192)  {0, 2, 3}
//   CutRows({8191}, 2, 8192)      {0, 8191}
std::vector<std::int64_t> CutRows(const Shape& shape, int parts, std::int64_t min_elements);

// As many slices as above, with rows that differ by one at most: the first ones have the odd rows.
//
//   CutEvenly({5, 5000}, 4, 8192)     {0, 2, 4, 5}
//   CutEvenly({7, 4608}, 4, 8192)     {0, 3, 5, 7}
std::vector<std::int64_t> CutEvenly(const Shape& shape, int parts, std::int64_t min_elements);

// MXNet's rule for its servers: an array of `bound` elements or more is cut into one part for each of them,
// others are one slice. Parts without a row, where there are fewer rows than parts, are left out.
//
//   CutAcross({10, 200000}, 4, 1000000)  {0, 3, 5, 8, 10}
//   CutAcross({3, 1000000}, 4, 1000000)  {0, 1, 2, 3}
//   CutAcross({100}, 4, 1000000)         {0, 100}
std::vector<std::int64_t> CutAcross(const Shape& shape, int parts, std::int64_t bound);
// Where part `part` (from 0) of them ends: rows * (part + 1) / parts, rounded.
std::int64_t PartEnd(std::int64_t rows, int parts, int part);

}  // namespace penstock::plan
