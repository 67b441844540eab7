#include "framework/vector/column_sums.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/vector/column_sums.cc"
#include <hwy/foreach_target.h>  // must stand before the headers below

#include "framework/vector/lanes_inl.h"
#include "framework/vector/rows_inl.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::vec::HWY_NAMESPACE {

// sums[j] += term(row, j) of each row; term(d, row, j, n) is a vector of them.
template <typename Term>
HWY_INLINE void AddTerms(std::size_t rows, std::size_t columns, float* sums, Term term) {
  EachRows(rows, columns, [=](std::size_t first, std::size_t count) {
    EachVector(columns, [=](Floats d, std::size_t j, std::size_t n) {
      Vector sum = Load(d, sums + j, n);
      for (std::size_t row = first; row < first + count; ++row) sum = hn::Add(sum, term(d, row, j, n));
      Store(d, sum, sums + j, n);
    });
  });
}

void AddRows(const float* x, std::size_t stride, std::size_t rows, std::size_t columns, float* sums) {
  AddTerms(rows, columns, sums, [=](Floats d, std::size_t row, std::size_t j, std::size_t n) {
    return Load(d, x + row * stride + j, n);
  });
}
void AddRowsOfProducts(const float* x, std::size_t x_stride, const float* y, std::size_t y_stride,
                       std::size_t rows, std::size_t columns, float* sums) {
  AddTerms(rows, columns, sums, [=](Floats d, std::size_t row, std::size_t j, std::size_t n) {
    return hn::Mul(Load(d, x + row * x_stride + j, n), Load(d, y + row * y_stride + j, n));
  });
}

float SumOfRow(const float* x, std::size_t count) {
  Lanes lanes(0);
  EachPart(count, [&](Floats d, std::size_t i, std::size_t n, std::size_t part) {
    lanes.parts[part] = hn::Add(lanes.parts[part], Load(d, x + i, n));
  });
  return Sum(lanes);
}
float SumOfRowOfProducts(const float* x, const float* y, std::size_t count) {
  Lanes lanes(0);
  EachPart(count, [&](Floats d, std::size_t i, std::size_t n, std::size_t part) {
    lanes.parts[part] = hn::Add(lanes.parts[part], hn::Mul(Load(d, x + i, n), Load(d, y + i, n)));
  });
  return Sum(lanes);
}

}  // namespace penstock::vec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::vec {

HWY_EXPORT(AddRows);
HWY_EXPORT(AddRowsOfProducts);
HWY_EXPORT(SumOfRow);
HWY_EXPORT(SumOfRowOfProducts);

void AddRows(const float* x, std::size_t stride, std::size_t rows, std::size_t columns, float* sums) {
  HWY_DYNAMIC_DISPATCH(AddRows)(x, stride, rows, columns, sums);
}
void AddRowsOfProducts(const float* x, std::size_t x_stride, const float* y, std::size_t y_stride,
                       std::size_t rows, std::size_t columns, float* sums) {
  HWY_DYNAMIC_DISPATCH(AddRowsOfProducts)(x, x_stride, y, y_stride, rows, columns, sums);
}
float SumOfRow(const float* x, std::size_t count) { return HWY_DYNAMIC_DISPATCH(SumOfRow)(x, count); }
float SumOfRowOfProducts(const float* x, const float* y, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(SumOfRowOfProducts)(x, y, count);
}

}  // namespace penstock::vec
#endif  // HWY_ONCE
