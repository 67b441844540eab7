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

// An argument viewed as a matrix or as a batch of matrices. Strides are in elements.
struct MatrixSlot {
  Operand operand;
  Dim batch = 1, rows = 0, columns = 0;
  Dim batch_stride = 0;  // 0 with a batch above 1: all products read the same matrix, or are summed in it
  Dim row_stride = 0, column_stride = 1;
  Dim offset = 0;  // of the first element
};

// Returns a tensor flattened to two dimensions: the rows run over its first `row_dims` axes.
Result<MatrixSlot> AsMatrix(const KernelSetup& k, const Argument& argument, int row_dims);
MatrixSlot Transposed(MatrixSlot matrix);
// Some rows or columns of each matrix, or some of the matrices.
MatrixSlot RowsOf(MatrixSlot matrix, Dim first, Dim rows);
MatrixSlot ColumnsOf(MatrixSlot matrix, Dim first, Dim columns);
MatrixSlot BatchOf(MatrixSlot matrix, Dim first, Dim batch);

// The interface that each device implements.
class MatrixProduct {
 public:
  virtual ~MatrixProduct() = default;
  // The shapes of the operands must match.
  virtual Status Prepare(KernelSetup& k, const MatrixSlot& a, const MatrixSlot& b, const MatrixSlot& out,
                         double alpha) = 0;
  // As Prepare, of a single product stored by rows; `row`, of out.columns elements, is added to each row of
  // it. Bytes are those of the product and a sum after it. A device without it has no op that needs it.
  virtual Status PrepareWithRow(KernelSetup& k, const MatrixSlot& a, const MatrixSlot& b,
                                const MatrixSlot& out, const Operand& row);
  virtual Status Run(KernelRun& k) = 0;
};
template <typename Device, typename T>
std::unique_ptr<MatrixProduct> MakeMatrixProduct();
template <>
std::unique_ptr<MatrixProduct> MakeMatrixProduct<Cpu, float>();
template <>
std::unique_ptr<MatrixProduct> MakeMatrixProduct<Cpu, double>();
template <>
std::unique_ptr<MatrixProduct> MakeMatrixProduct<Cuda, float>();  // matmul_device.cu, as the next one
template <>
std::unique_ptr<MatrixProduct> MakeMatrixProduct<Cuda, double>();

// kInvalidArgument unless a . b has out's shape.
Status CheckProduct(const KernelSetup& k, const MatrixSlot& a, const MatrixSlot& b, const MatrixSlot& out);

// out = alpha * a . b for each matrix of the batch. If out has batch stride 0, the products are summed over
// the batch.
template <typename Device, typename T>
class MatMul {
 public:
  Status Prepare(KernelSetup& k, const MatrixSlot& a, const MatrixSlot& b, const MatrixSlot& out,
                 double alpha = 1.0) {
    PENSTOCK_RETURN_IF_ERROR(CheckProduct(k, a, b, out));
    product_ = MakeMatrixProduct<Device, T>();
    return product_->Prepare(k, a, b, out, alpha);
  }
  // out = a . b + row for each row of the only product. An absent row is not added.
  Status PrepareWithRow(KernelSetup& k, const MatrixSlot& a, const MatrixSlot& b, const MatrixSlot& out,
                        const Operand& row) {
    if (!row) return Prepare(k, a, b, out);
    PENSTOCK_RETURN_IF_ERROR(CheckProduct(k, a, b, out));
    product_ = MakeMatrixProduct<Device, T>();
    return product_->PrepareWithRow(k, a, b, out, row);
  }
  // Does nothing if it was not prepared, as for a gradient that no op reads.
  Status Run(KernelRun& k) { return product_ == nullptr ? OkStatus() : product_->Run(k); }

 private:
  std::unique_ptr<MatrixProduct> product_;
};

}  // namespace penstock
