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

}  // namespace penstock::vec
