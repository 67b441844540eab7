// A loop over the rows of a matrix, some at a time, for the files of this folder. Compiled once per
// instruction set, as lanes_inl.h.
//
//   EachRows(rows, columns, [&](std::size_t first, std::size_t count) {   // rows [first, first + count)
//     EachVector(columns, [&](Floats d, std::size_t j, std::size_t n) {
//       Vector sum = Load(d, sums + j, n);
//       for each of the rows: sum = hn::Add(sum, Load(d, x + row * columns + j, n));
//
// Of narrow rows, several are visited while the numbers of a column are in registers. Wide rows are visited
// one by one, since memory is read fastest in its order: with AVX-512, rows of 512 take half the time so.
#if defined(PENSTOCK_VECTOR_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PENSTOCK_VECTOR_ROWS_INL_H_
#undef PENSTOCK_VECTOR_ROWS_INL_H_
#else
#define PENSTOCK_VECTOR_ROWS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace penstock::vec::HWY_NAMESPACE {

template <typename Part>
HWY_INLINE void EachRows(std::size_t rows, std::size_t columns, Part part) {
  constexpr std::size_t kWide = 128;
  const std::size_t together = columns < kWide ? 16 : 1;
  for (std::size_t first = 0; first < rows; first += together) part(first, std::min(together, rows - first));
}

}  // namespace penstock::vec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PENSTOCK_VECTOR_ROWS_INL_H_
