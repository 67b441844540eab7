// Sums of floats in double precision, and largest and smallest elements, of arrays and of columns of rows.
//
// An array's sum has 32 lanes: element i is added to lane i % 32, and then lanes i and i + 16, i + 8 ... are
// added. The square of a float is exact in double. Hence bytes are the same on every instruction set. NaN
// and infinities take their course; the largest and the smallest element of an array with a NaN are NaN.
#pragma once

#include <cstddef>

namespace penstock::vec {

double Sum(const float* x, std::size_t count);
double SumOfSquares(const float* x, std::size_t count);
// -infinity and infinity for no elements
float Largest(const float* x, std::size_t count);
float Smallest(const float* x, std::size_t count);

// sums[j] += x[j] + x[stride + j] + ..., the rows from the first on; the same of the squares
void AddRowsInDouble(const float* x, std::size_t stride, std::size_t rows, std::size_t columns, double* sums);
void AddSquaresInDouble(const float* x, std::size_t stride, std::size_t rows, std::size_t columns,
                        double* sums);
// largest[j] becomes the largest of itself and x[j], x[stride + j] ...
void LargestOfRows(const float* x, std::size_t stride, std::size_t rows, std::size_t columns, float* largest);
void SmallestOfRows(const float* x, std::size_t stride, std::size_t rows, std::size_t columns,
                    float* smallest);

}  // namespace penstock::vec
