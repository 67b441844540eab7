// Normalisation of columns, and its gradient: batch_norm of images that are stored channels last,
// [rows, columns] floats with a row for each point of each image and a column for each channel.
//
// Rows are added one after the other. Bytes are the same with AVX2 and AVX-512, and for every split of the
// columns; with less, products are not fused, and results differ by roundings. A NaN or an infinity makes
// its column NaN. Nothing is allocated.
#pragma once

#include <cstddef>

namespace penstock::vec {

struct Matrix {
  std::size_t rows, columns;
};

// sums[j] += (x[i][j] - mean[j])^2 of each row
void AddSquaredDistances(const Matrix& m, const float* x, const float* mean, float* sums);
// y[i][j] = (x[i][j] - mean[j]) * factor[j] + bias[j]. y may be x.
void NormalizeColumns(const Matrix& m, const float* x, const float* mean, const float* factor,
                      const float* bias, float* y);

// sums[j] += dy[i][j], alongs[j] += dy[i][j] * (x[i][j] - mean[j]) of each row
void AddSlopes(const Matrix& m, const float* x, const float* dy, const float* mean, float* sums,
               float* alongs);
// dx[i][j] = steep[j] * dy[i][j] + (along[j] * (x[i][j] - mean[j]) + constant[j]). dx may be dy or x.
struct ColumnSlopes {
  const float *mean, *steep, *along, *constant;
};
void DifferentiateColumns(const Matrix& m, const float* x, const float* dy, const ColumnSlopes& slopes,
                          float* dx);

// The same before a relu (piecewise.h), in one pass: with the bytes of one function after the other.
//
// y[i][j] = relu((x[i][j] - mean[j]) * factor[j] + bias[j] + addend[i][j]). Without addend if it is null.
// y may be x or addend.
void NormalizeColumnsRelu(const Matrix& m, const float* x, const float* mean, const float* factor,
                          const float* bias, const float* addend, float* y);
// The gradient of y. `more` is added to dy; it may be null.
struct ReluSlopes {
  const float *y, *dy, *more;
};
// AddSlopes of the relu's gradient, which is also written to `kept` unless that is null; `kept` may be dy or
// more.
void AddReluSlopes(const Matrix& m, const float* x, const ReluSlopes& relu, const float* mean, float* sums,
                   float* alongs, float* kept);

}  // namespace penstock::vec
