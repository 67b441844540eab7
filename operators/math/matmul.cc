// matmul: products of the matrices in the last two dimensions of X and Y, for each index of the preceding
// dimensions.
#include <algorithm>
#include <optional>

#include "framework/op/op_registry.h"
#include "operators/common/fluid_attrs.h"
#include "operators/common/require_shape.h"
#include "operators/math/matmul_device.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out = alpha * op(X) . op(Y), where op transposes the last two dimensions if transpose_X (transpose_Y) is set.

A vector X is treated as a row and a vector Y as a column; the resulting dimension of 1 is dropped from Out
(the product of two vectors is [1]). Dimensions before the last two form a batch. Both operands have the same
batch, or only one has a batch and the matrix of the other is used for each of its matrices.)";

// An argument as the batch of matrices that enters the product.
struct Factor {
  std::optional<Dim> batch;  // none: a single matrix
  Dim rows = 0, columns = 0;
};

Factor FactorOf(const Shape& shape, bool vector_is_row, bool transpose) {
  Factor f;
  if (shape.rank() == 1) {
    f.rows = vector_is_row ? 1 : shape[0];
    f.columns = vector_is_row ? shape[0] : 1;
  } else {
    f.rows = shape[shape.rank() - 2];
    f.columns = shape[shape.rank() - 1];
    if (shape.rank() > 2) f.batch = shape.Product(0, shape.rank() - 2);
  }
  if (transpose) std::swap(f.rows, f.columns);
  return f;
}

Status InferMatMul(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("X", 0));
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("Y", 0));
  const Shape& x = c.ShapeOf("X");
  const Shape& y = c.ShapeOf("Y");
  const Factor a = FactorOf(x, true, c.Attr<bool>("transpose_X"));
  const Factor b = FactorOf(y, false, c.Attr<bool>("transpose_Y"));
  if (!Compatible(a.columns, b.rows)) {
    return c.Error("width of X (", a.columns, ", shape ", x, ") must equal height of Y (", b.rows, ", shape ",
                   y, ")");
  }
  if (a.batch && b.batch && !Compatible(*a.batch, *b.batch)) {
    return c.Error("X ", x, " and Y ", y, " must have the same number of matrices (", *a.batch, " and ",
                   *b.batch, ")");
  }
  Shape out = a.batch ? x.First(x.rank() - 2) : y.First(b.batch ? y.rank() - 2 : 0);
  if (x.rank() != 1 || a.rows != 1) out.Append(a.rows);
  if (y.rank() != 1 || b.columns != 1) out.Append(b.columns);
  if (out.rank() == 0) out.Append(1);
  c.ShareLod("X", "Out");
  return c.SetShape("Out", out);
}

// The matrices of an argument in memory, transposed if requested, and repeated to `batch` if there is only
// one.
MatrixSlot SlotOf(const Argument& argument, bool vector_is_row, bool transpose, Dim batch) {
  const Factor f = FactorOf(argument.shape, vector_is_row, false);
  MatrixSlot m{argument, batch, f.rows, f.columns, 0, f.columns, 1};
  if (f.batch) m.batch_stride = f.rows * f.columns;
  return transpose ? Transposed(m) : m;
}

// A batch of matrices that are contiguous by rows is one tall matrix.
MatrixSlot Stacked(MatrixSlot m) {
  m.rows *= m.batch;
  m.batch = 1;
  m.batch_stride = 0;
  return m;
}

// The three matrices of the product; dX, dY and dOut have the layouts of X, Y and Out.
struct Product {
  MatrixSlot x, y, out;
};

Result<Product> ProductOf(const KernelSetup& k, const Argument& x, const Argument& y, const Argument& out) {
  const bool transpose_x = k.Attr<bool>("transpose_X");
  const bool transpose_y = k.Attr<bool>("transpose_Y");
  if (x.shape.rank() == 0 || y.shape.rank() == 0)
    return k.Error("ranks of X (", x.shape.rank(), ") and Y (", y.shape.rank(), ") must be above 0");
  const Factor a = FactorOf(x.shape, true, transpose_x);
  const Factor b = FactorOf(y.shape, false, transpose_y);
  if (a.batch && b.batch && a.batch != b.batch) {
    return k.Error("X ", x.shape, " and Y ", y.shape, " must have the same number of matrices");
  }
  if (a.columns != b.rows) {
    return k.Error("width of X (", a.columns, ", shape ", x.shape, ") must equal height of Y (", b.rows,
                   ", shape ", y.shape, ")");
  }
  const bool batched = a.batch || b.batch;
  const Dim batch = a.batch ? *a.batch : b.batch.value_or(1);
  Product p;
  p.x = SlotOf(x, true, transpose_x, batch);
  p.y = SlotOf(y, false, transpose_y, batch);
  p.out = {out, batch, a.rows, b.columns, batched ? a.rows * b.columns : 0, b.columns, 1};
  if (a.batch && !b.batch && !transpose_x) {
    p.x = Stacked(p.x);
    p.out = Stacked(p.out);
    p.y.batch = 1;
  }
  return p;
}

template <typename Device, typename T>
class MatMulKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const Product p, ProductOf(k, k.Input("X"), k.Input("Y"), k.Output("Out")));
    return product_.Prepare(k, p.x, p.y, p.out, k.Attr<float>("alpha"));
  }
  Status Run(KernelRun& k) override { return product_.Run(k); }

 private:
  MatMul<Device, T> product_;
};

// d op(X) = alpha * dOut . op(Y)'   d op(Y) = alpha * op(X)' . dOut. The gradient of a matrix used for a
// whole batch is the sum over the batch.
template <typename Device, typename T>
class MatMulGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(Product p, ProductOf(k, k.Input("X"), k.Input("Y"), k.Input("Out@GRAD")));
    PENSTOCK_RETURN_IF_ERROR(RequireCount(k, "Out@GRAD", p.out.batch * p.out.rows * p.out.columns));
    const double alpha = k.Attr<float>("alpha");
    if (const Argument& wanted = k.Output("X@GRAD")) {
      MatrixSlot dx = p.x;
      dx.operand = wanted;
      PENSTOCK_RETURN_IF_ERROR(dx_.Prepare(k, p.out, Transposed(p.y), dx, alpha));
    }
    if (const Argument& wanted = k.Output("Y@GRAD")) {
      MatrixSlot dy = p.y;
      dy.operand = wanted;
      PENSTOCK_RETURN_IF_ERROR(dy_.Prepare(k, Transposed(p.x), p.out, dy, alpha));
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

}  // namespace

void RegisterMatmul(OpRegistry& ops) {
  const std::vector<std::int32_t> none;
  ops.Add("matmul")
      .Doc("Products of the matrices in the last two dimensions of X and Y.", kDoc)
      .Input("X", "left factor; a vector is a row", Floats())
      .Input("Y", "right factor; a vector is a column", SameTypeAs("X"))
      .Output("Out", "the product", SameTypeAs("X"), Apart())
      .Attr("transpose_X", false, "whether to transpose the last two dimensions of X")
      .Attr("transpose_Y", false, "whether to transpose the last two dimensions of Y")
      .Attr("alpha", 1.0f, "the factor of the product")
      .Attr("use_mkldnn", false, kNoEffect)
      .Attr("fused_reshape_Out", none, kNoEffect, OnlyValue(none))
      .Attr("fused_transpose_Out", none, kNoEffect, OnlyValue(none))
      .Attr("use_quantizer", false, kNoEffect)
      .Attr("Scale_x", 1.0f, kNoEffect)
      .Attr("Scale_y", 1.0f, kNoEffect)
      .Attr("Scale_out", 1.0f, kNoEffect)
      .Attr("force_fp32_output", false, kNoEffect)
      .Attr("head_number", 1, "the number of heads that share a matrix", OnlyValue(1))
      .InferShape(InferMatMul)
      .Kernel<Cpu, MatMulKernel, float, double>()
      .Grad({.reads = {"X", "Y"}, .yields = {"X", "Y"}, .apart = {"X", "Y"}})
      .GradKernel<Cpu, MatMulGradKernel, float, double>();
}

}  // namespace penstock
