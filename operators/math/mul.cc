// mul: the matrix product of X and Y, each first flattened to two dimensions.
#include "framework/op/op_registry.h"
#include "operators/common/fluid_attrs.h"
#include "operators/common/grad_shapes.h"
#include "operators/cuda/cuda_kernels.h"
#include "operators/math/mul_kernels.h"
#include "operators/math/mul_second_order.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out = flatten(X, x_num_col_dims) . flatten(Y, y_num_col_dims)

flatten(T, n) views T as a matrix; its first n dimensions form the rows, the others the columns. Out has the
first x_num_col_dims dimensions of X, then the dimensions of Y from y_num_col_dims on.
Cost: 2 * rows(X) * columns(X) * columns(Y) flops.)";

// The schema has already checked presence, element types and attribute ranges; only conditions that relate X
// to Y remain.
Status InferMul(InferContext& c) {
  const Shape& x = c.ShapeOf("X");
  const Shape& y = c.ShapeOf("Y");
  const int x_rows_to = c.Attr<std::int32_t>("x_num_col_dims");
  const int y_rows_to = c.Attr<std::int32_t>("y_num_col_dims");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("X", x_rows_to));
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("Y", y_rows_to));

  const Dim width = x.Product(x_rows_to, x.rank());
  const Dim height = y.Product(0, y_rows_to);
  if (!Compatible(width, height)) {  // an unknown extent is compatible with any
    return c.Error("width of X (", width, ") must equal height of Y (", height, ")");
  }
  c.ShareLod("X", "Out");
  return c.SetShape("Out", Concat(x.First(x_rows_to), y.From(y_rows_to)));
}

}  // namespace

void RegisterMul(OpRegistry& ops) {
  OpDef& mul =
      ops.Add("mul")
          .Doc("Matrix product of X and Y, each flattened to two dimensions.", kDoc)
          .Input("X", "left factor; of rank above x_num_col_dims", Floats())
          .Input("Y", "right factor; of rank above y_num_col_dims", SameTypeAs("X"))
          .Output("Out", "the product", SameTypeAs("X"), Apart())
          .Attr("use_mkldnn", false, kNoEffect)
          .Attr("x_num_col_dims", 1, "the number of leading dimensions of X that form the rows", AtLeast(1))
          .Attr("y_num_col_dims", 1, "the number of leading dimensions of Y that form the rows", AtLeast(1))
          .Attr("scale_x", 1.0f, kNoEffect)
          .Attr("scale_y", std::vector<float>{1.0f}, kNoEffect)
          .Attr("scale_out", 1.0f, kNoEffect)
          .Attr("force_fp32_output", false, kNoEffect)
          .InferShape(InferMul)
          .Kernel<Cpu, MulKernel, float, double>()
          .Grad({.reads = {"X", "Y"}, .yields = {"X", "Y"}, .apart = {"X", "Y"}})
          .GradKernel<Cpu, MulGradKernel, float, double>();
  mul.GradDef().InferShape(GradsWithLodUndeclared({"X", "Y"}));
  AddMulSecondOrder(ops, mul);
  RegisterMulCuda(mul);
}

}  // namespace penstock
