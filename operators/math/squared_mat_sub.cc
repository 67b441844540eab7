// fusion_squared_mat_sub: the square of a matrix product minus the product of the squares.
#include <algorithm>

#include "framework/op/op_registry.h"
#include "operators/common/require_shape.h"
#include "operators/math/matmul_device.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out = ((X . Y) ^ 2 - X ^ 2 . Y ^ 2) * scalar

The squares are elementwise; SquaredX, SquaredY and SquaredXY hold X ^ 2, Y ^ 2 and (X . Y) ^ 2. Half of the
result is the second-order term of a factorization machine. Inference programs use this op in place of
several, so it has no gradient.)";

Status InferSquaredMatSub(InferContext& c) {
  const Shape &x = c.ShapeOf("X"), &y = c.ShapeOf("Y");
  for (const char* slot : {"X", "Y"}) PENSTOCK_RETURN_IF_ERROR(c.RequireRank(slot, 2));
  if (!Compatible(x[1], y[0])) return c.Error("width of X (", x, ") must equal height of Y (", y, ")");
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("SquaredX", x));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("SquaredY", y));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("SquaredXY", {x[0], y[1]}));
  return c.SetShape("Out", {x[0], y[1]});
}

template <typename Device, typename T>
class SquaredMatSubKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    for (const char* slot : {"SquaredX", "SquaredY", "SquaredXY"})
      PENSTOCK_RETURN_IF_ERROR(RequireOutput(k, slot));
    PENSTOCK_ASSIGN_OR_RETURN(x_, AsMatrix(k, k.Input("X"), 1));
    PENSTOCK_ASSIGN_OR_RETURN(y_, AsMatrix(k, k.Input("Y"), 1));
    PENSTOCK_ASSIGN_OR_RETURN(x2_, AsMatrix(k, k.Output("SquaredX"), 1));
    PENSTOCK_ASSIGN_OR_RETURN(y2_, AsMatrix(k, k.Output("SquaredY"), 1));
    PENSTOCK_ASSIGN_OR_RETURN(xy2_, AsMatrix(k, k.Output("SquaredXY"), 1));
    PENSTOCK_ASSIGN_OR_RETURN(out_, AsMatrix(k, k.Output("Out"), 1));
    scalar_ = static_cast<T>(k.Attr<float>("scalar"));
    PENSTOCK_RETURN_IF_ERROR(product_.Prepare(k, x_, y_, xy2_));
    return of_squares_.Prepare(k, x2_, y2_, out_);
  }
  Status Run(KernelRun& k) override {
    Square(k, x_, x2_);
    Square(k, y_, y2_);
    PENSTOCK_RETURN_IF_ERROR(product_.Run(k));
    PENSTOCK_RETURN_IF_ERROR(of_squares_.Run(k));
    Square(k, xy2_, xy2_);
    const T* const squares = std::as_const(k[xy2_.operand]).template Data<T>();
    T* const out = k[out_.operand].template Data<T>();
    for (Dim i = 0; i < out_.rows * out_.columns; ++i) out[i] = (squares[i] - out[i]) * scalar_;
    return OkStatus();
  }

 private:
  static void Square(KernelRun& k, const MatrixSlot& from, const MatrixSlot& to) {
    const T* const x = std::as_const(k[from.operand]).template Data<T>();
    std::transform(x, x + from.rows * from.columns, k[to.operand].template Data<T>(),
                   [](T value) { return value * value; });
  }

  MatrixSlot x_, y_, x2_, y2_, xy2_, out_;
  MatMul<Device, T> product_, of_squares_;
  T scalar_ = 1;
};

}  // namespace

void RegisterSquaredMatSub(OpRegistry& ops) {
  ops.Add("fusion_squared_mat_sub")
      .Doc("The square of a matrix product minus the product of the squares.", kDoc)
      .Input("X", "[rows, width]", Floats())
      .Input("Y", "[width, columns]", SameTypeAs("X"))
      .Output("SquaredX", "the squares of X", SameTypeAs("X"), Intermediate() | Apart())
      .Output("SquaredY", "the squares of Y", SameTypeAs("X"), Intermediate() | Apart())
      .Output("SquaredXY", "the squares of X . Y", SameTypeAs("X"), Intermediate() | Apart())
      .Output("Out", "[rows, columns]", SameTypeAs("X"), Apart())
      .Attr("scalar", 1.0f, "the factor of the result")
      .InferShape(InferSquaredMatSub)
      .Kernel<Cpu, SquaredMatSubKernel, float, double>()
      .NoGrad();
}

}  // namespace penstock
