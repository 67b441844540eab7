// The matrix product of a device: oneDNN for f32 on CPUs, Eigen for f64 on CPUs, cuBLAS on GPUs.
//
//   PENSTOCK_ASSIGN_OR_RETURN(const MatrixSlot x, AsMatrix(k, k.Input("X"), 1));
//   PENSTOCK_ASSIGN_OR_RETURN(const MatrixSlot y, AsMatrix(k, k.Input("Y"), 1));
//   PENSTOCK_ASSIGN_OR_RETURN(const MatrixSlot out, AsMatrix(k, k.Output("Out"), 1));
//   PENSTOCK_RETURN_IF_ERROR(product_.Prepare(k, Transposed(x), y, out));     // Out = X' . Y
#pragma once

#include <memory>

#include "framework/base/status.h"
#include "framework/op/kernel.h"

namespace penstock {

// An argument seen as a matrix, or as a batch of them. Strides are in elements.
struct MatrixSlot {
  Operand operand;
  Dim batch = 1, rows = 0, columns = 0;
  Dim batch_stride = 0;  // 0 with a batch above 1: each product reads the same matrix, or adds to it
  Dim row_stride = 0, column_stride = 1;
};

// A tensor flattened to two dimensions: rows run over its first `row_dims` extents.
Result<MatrixSlot> AsMatrix(const KernelSetup& k, const Operand& operand, int row_dims);
MatrixSlot Transposed(MatrixSlot matrix);

// out = alpha * a . b for each matrix of the batch. Where out has batch stride 0, the sum over the batch.
template <typename Device, typename T>
class MatMul {
 public:
  MatMul();
  ~MatMul();
  MatMul(MatMul&&) noexcept;
  MatMul& operator=(MatMul&&) noexcept;

  Status Prepare(KernelSetup& k, const MatrixSlot& a, const MatrixSlot& b, const MatrixSlot& out,
                 double alpha = 1.0);
  // Does nothing if it was not prepared: a gradient that nobody reads.
  Status Run(KernelRun& k);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

extern template class MatMul<Cpu, float>;
extern template class MatMul<Cpu, double>;

// What every device checks: a . b must have out's shape.
Status CheckProduct(const KernelSetup& k, const MatrixSlot& a, const MatrixSlot& b, const MatrixSlot& out);

}  // namespace penstock
