// The kernels of mul and mul_grad for any device that has a MatMul.
#pragma once

#include "operators/math/matmul_device.h"

namespace penstock {

// Out = X . Y on the device's own matrix product (oneDNN on CPUs, cuBLAS on GPUs).
template <typename Device, typename T>
class MulKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    const int x_rows_to = k.Attr<std::int32_t>("x_num_col_dims");
    const int y_rows_to = k.Attr<std::int32_t>("y_num_col_dims");
    PENSTOCK_ASSIGN_OR_RETURN(const MatrixSlot x, AsMatrix(k, k.Input("X"), x_rows_to));
    PENSTOCK_ASSIGN_OR_RETURN(const MatrixSlot y, AsMatrix(k, k.Input("Y"), y_rows_to));
    PENSTOCK_ASSIGN_OR_RETURN(const MatrixSlot out, AsMatrix(k, k.Output("Out"), x_rows_to));
    return product_.Prepare(k, x, y, out);
  }
  Status Run(KernelRun& k) override { return product_.Run(k); }

 private:
  MatMul<Device, T> product_;
};

// dX = dOut . Y'   dY = X' . dOut, each only if the op has that output.
template <typename Device, typename T>
class MulGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    const int x_rows_to = k.Attr<std::int32_t>("x_num_col_dims");
    const int y_rows_to = k.Attr<std::int32_t>("y_num_col_dims");
    PENSTOCK_ASSIGN_OR_RETURN(const MatrixSlot x, AsMatrix(k, k.Input("X"), x_rows_to));
    PENSTOCK_ASSIGN_OR_RETURN(const MatrixSlot y, AsMatrix(k, k.Input("Y"), y_rows_to));
    PENSTOCK_ASSIGN_OR_RETURN(const MatrixSlot dout, AsMatrix(k, k.Input("Out@GRAD"), x_rows_to));
    if (const Argument& wanted = k.Output("X@GRAD")) {
      PENSTOCK_ASSIGN_OR_RETURN(const MatrixSlot dx, AsMatrix(k, wanted, x_rows_to));
      PENSTOCK_RETURN_IF_ERROR(dx_.Prepare(k, dout, Transposed(y), dx));
    }
    if (const Argument& wanted = k.Output("Y@GRAD")) {
      PENSTOCK_ASSIGN_OR_RETURN(const MatrixSlot dy, AsMatrix(k, wanted, y_rows_to));
      PENSTOCK_RETURN_IF_ERROR(dy_.Prepare(k, Transposed(x), dout, dy));
    }
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(dx_.Run(k));
    return dy_.Run(k);
  }

 private:
  MatMul<Device, T> dx_, dy_;
};

}  // namespace penstock
