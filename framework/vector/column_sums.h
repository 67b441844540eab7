// Sums of rows, column by column, and along a row: gradients of what was added to, or multiplied with, each
// row, or with all elements of a row.
//
// Rows are added one after the other, the elements of a row in 32 lanes (lanes_inl.h), and products are not
// fused: bytes are the same on every instruction set, and for every split of rows (in their order) and of
// columns. NaN and infinities take their course.
#pragma once

#include <cstddef>

namespace penstock::vec {

// sums[j] += x[j] + x[stride + j] + ..., the rows from the first on
void AddRows(const float* x, std::size_t stride, std::size_t rows, std::size_t columns, float* sums);
// The same of x * y, with a stride for each, which may be 0.
void AddRowsOfProducts(const float* x, std::size_t x_stride, const float* y, std::size_t y_stride,
                       std::size_t rows, std::size_t columns, float* sums);
// x[0] + x[1] + ..., and the same of x * y
float SumOfRow(const float* x, std::size_t count);
float SumOfRowOfProducts(const float* x, const float* y, std::size_t count);

}  // namespace penstock::vec
