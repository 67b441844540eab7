// Matrix products whose sizes are known only in Run, such as a step of a recurrence. If Prepare knows the
// sizes, use MatMul (matmul_device.h), which keeps a primitive.
//
//   PENSTOCK_RETURN_IF_ERROR(Gemm<T>(RowMajor(h, n, width), RowMajor(w, width, 4 * width),
//                                    RowMajor(gates, n, 4 * width), {.add = true, .threads = threads_}));
#pragma once

#include "framework/base/status.h"
#include "framework/tensor/shape.h"

namespace penstock {

// A matrix in memory whose rows are `stride` elements apart. `transposed`: the view is the transpose of that
// matrix.
template <typename T>
struct MatrixView {
  T* data = nullptr;
  Dim rows = 0, columns = 0;  // of the view, after transposition
  Dim stride = 0;
  bool transposed = false;
};
template <typename T>
MatrixView<T> RowMajor(T* data, Dim rows, Dim columns) {
  return {data, rows, columns, columns, false};
}
// A part of the columns of wider rows, which are `stride` elements apart.
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
  int threads = 1;   // that share the rows or columns of a large product
};

// Computes c = a . b, or c += a . b, by oneDNN for f32 and by Eigen for f64. The sizes of the views must
// match, and c must not be transposed. Any extent may be 0. kInternal: oneDNN failed.
template <typename T>
Status Gemm(const MatrixView<const T>& a, const MatrixView<const T>& b, const MatrixView<T>& c,
            const GemmOptions& options);

}  // namespace penstock
