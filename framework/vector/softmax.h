// Softmax of rows, and of columns, of floats.
//
// Bytes are the same with AVX2 and AVX-512, and for any number of rows per call; with less, they differ by
// the exponential's 2 ulp. A row with a NaN or with an infinity that is its maximum becomes NaN.
#pragma once

#include <cstddef>

namespace penstock::vec {

// The score that is subtracted from all others of a row, and log(sum over i of exp(x[i] - largest)).
struct RowScale {
  float largest, log_sum;
};

// y[i] = exp(s[i]) / sum over j of exp(s[j]),  s[i] = max(x[i] - (largest of x), -64),  for each row of
// `count` elements. y may be x. If `scales` is given, it receives the numbers of each row. Error of an
// element: 6 ulp, |s[i]| / 2 ulp because the difference is rounded, and count / 32 roundings of the sum.
void Softmax(const float* x, float* y, std::size_t rows, std::size_t count, RowScale* scales = nullptr);

// dx[i] = y[i] * (dy[i] - sum over j of dy[j] * y[j]). dx may be dy.
void SoftmaxGrad(const float* y, const float* dy, float* dx, std::size_t rows, std::size_t count);

// The same of columns: element i of column j is x[i * stride + j], i < count, j < columns. The sum has
// count / 4 roundings. dx may be dy.
void SoftmaxOfColumns(const float* x, float* y, std::size_t count, std::size_t stride, std::size_t columns);
void SoftmaxGradOfColumns(const float* y, const float* dy, float* dx, std::size_t count, std::size_t stride,
                          std::size_t columns);

// loss[r] = sum over i of share[i] * (log_sum - s[i]) for each row: the cross entropy of the distribution
// `share` and the softmax of x.
void SoftCrossEntropy(const float* x, const float* share, const RowScale* scales, float* loss,
                      std::size_t rows, std::size_t count);
// loss[r] = -(sum over i of share[i] * log(p[i])) for each row. Logarithms are limited to +-1e20.
void CrossEntropyOfShares(const float* p, const float* share, float* loss, std::size_t rows,
                          std::size_t count);

}  // namespace penstock::vec
