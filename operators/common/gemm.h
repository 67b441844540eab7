// Matrix products whose sizes are known only in Run: a step of sequences, say. Where Prepare knows them,
// MatMul (matmul_device.h) keeps a primitive instead.
//
//   PENSTOCK_RETURN_IF_ERROR(Gemm<T>(RowMajor(h, n, width), RowMajor(w, width, 4 * width),
//                                    RowMajor(gates, n, 4 * width), {.add = true, .threads = threads_}));
#pragma once

#include "framework/base/status.h"
#include "framework/tensor/shape.h"

namespace penstock {

// Rows of a matrix in memory, `stride` elements apart; seen as its transpose if so marked.
template <typename T>
struct MatrixView {
  T* data = nullptr;
  Dim rows = 0, columns = 0;  // of the matrix as it is seen
  Dim stride = 0;
  bool transposed = false;
};
template <typename T>
MatrixView<T> RowMajor(T* data, Dim rows, Dim columns) {
  return {data, rows, columns, columns, false};
}
// A part of wider rows.
template <typename T>
MatrixView<T> RowMajor(T* data, Dim rows, Dim columns, Dim stride) {
  return {data, rows, columns, stride, false};
}
template <typename T>
MatrixView<T> Transposed(const MatrixView<T>& m) {
  return {m.data, m.columns, m.rows, m.stride, !m.transposed};
}

struct GemmOptions {
  bool add = false;  // c += a . b; else c = a . b
  int threads = 1;   // of oneDNN's team
};

// oneDNN's for f32, Eigen's for f64. The views fit each other, and c is not transposed. Any extent may be 0.
// kInternal: oneDNN failed.
template <typename T>
Status Gemm(const MatrixView<const T>& a, const MatrixView<const T>& b, const MatrixView<T>& c,
            const GemmOptions& options);

}  // namespace penstock
