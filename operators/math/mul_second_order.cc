// mul_grad_grad: the second-order gradient of mul.
#include "operators/math/mul_second_order.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "operators/common/fluid_attrs.h"
#include "operators/common/gemm.h"
#include "operators/common/grad_args.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
DDOut = DDX . Y + X . DDY, DX = DOut . DDY', DY = DDX' . DOut, where each matrix is flattened as in mul. An
absent DDX or DDY counts as 0.)";

template <typename Device, typename T>
class MulSecondOrderKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    const int x_rows_to = k.Attr<int>("x_num_col_dims"), y_rows_to = k.Attr<int>("y_num_col_dims");
    k.Bind(x_, y_, dout_, ddx_, ddy_, ddout_, dx_, dy_);
    const Shape &x = k[x_].shape, &y = k[y_].shape;
    if (x.rank() <= x_rows_to || y.rank() <= y_rows_to)
      return k.Error("ranks of X (", x, ") and Y (", y, ") must be above their num_col_dims");
    rows_ = x.Product(0, x_rows_to);
    width_ = x.Product(x_rows_to, x.rank());
    columns_ = y.Product(y_rows_to, y.rank());
    if (y.Product(0, y_rows_to) != width_)
      return k.Error("width of X (", x, ") must equal height of Y (", y, ")");
    if (ddx_) PENSTOCK_RETURN_IF_ERROR(RequireCount(k, "DDX", rows_ * width_));
    if (ddy_) PENSTOCK_RETURN_IF_ERROR(RequireCount(k, "DDY", width_ * columns_));
    options_ = {.threads = k.threads()};
    return RequireCount(k, "DOut", rows_ * columns_);
  }
  Status Run(KernelRun& k) override {
    for (const Operand out : std::initializer_list<Operand>{ddout_, dx_, dy_}) {
      if (out) std::ranges::fill(k[out].template Span<T>(), T{0});
    }
    GemmOptions adds = options_;
    adds.add = true;
    if (ddout_ && ddx_)
      PENSTOCK_RETURN_IF_ERROR(Gemm<T>(Read(k, ddx_, rows_, width_), Read(k, y_, width_, columns_),
                                       Written(k, ddout_, rows_, columns_), adds));
    if (ddout_ && ddy_)
      PENSTOCK_RETURN_IF_ERROR(Gemm<T>(Read(k, x_, rows_, width_), Read(k, ddy_, width_, columns_),
                                       Written(k, ddout_, rows_, columns_), adds));
    if (dx_ && ddy_)
      PENSTOCK_RETURN_IF_ERROR(Gemm<T>(Read(k, dout_, rows_, columns_),
                                       Transposed(Read(k, ddy_, width_, columns_)),
                                       Written(k, dx_, rows_, width_), options_));
    if (dy_ && ddx_)
      PENSTOCK_RETURN_IF_ERROR(Gemm<T>(Transposed(Read(k, ddx_, rows_, width_)),
                                       Read(k, dout_, rows_, columns_), Written(k, dy_, width_, columns_),
                                       options_));
    return OkStatus();
  }

 private:
  static MatrixView<const T> Read(KernelRun& k, const Operand& operand, Dim rows, Dim columns) {
    return RowMajor(std::as_const(k[operand]).template Data<T>(), rows, columns);
  }
  static MatrixView<T> Written(KernelRun& k, const Operand& operand, Dim rows, Dim columns) {
    return RowMajor(k[operand].template Data<T>(), rows, columns);
  }
  In<"X"> x_;
  In<"Y"> y_;
  In<"DOut"> dout_;
  In<"DDX"> ddx_;
  In<"DDY"> ddy_;
  Out<"DDOut"> ddout_;
  Out<"DX"> dx_;
  Out<"DY"> dy_;
  Dim rows_ = 0, width_ = 0, columns_ = 0;
  GemmOptions options_;
};

Result<std::vector<Op>> MakeMulSecondOrder(const GradRequest& request) {
  const Op& forward = request.forward;
  const std::string ddout = request.grad_of(forward.InputName("Out@GRAD"));
  const std::string dx = request.grad_of(forward.InputName("X")),
                    dy = request.grad_of(forward.InputName("Y"));
  if (ddout.empty() && dx.empty() && dy.empty()) return std::vector<Op>();
  Op op("mul_grad_grad");
  op.AddInput("X", {forward.InputName("X")}).AddInput("Y", {forward.InputName("Y")});
  op.AddInput("DOut", {forward.InputName("Out@GRAD")});
  op.AddInput("DDX", GradOfResult(request, "X@GRAD")).AddInput("DDY", GradOfResult(request, "Y@GRAD"));
  op.AddOutput("DDOut", OneOrNone(ddout)).AddOutput("DX", OneOrNone(dx)).AddOutput("DY", OneOrNone(dy));
  for (const NamedAttr& attr : forward.attrs()) op.Set(attr.name, attr.value);
  return std::vector<Op>{std::move(op)};
}

}  // namespace

void AddMulSecondOrder(OpRegistry& ops, OpDef& mul) {
  mul.GradDef().GradMadeBy(MakeMulSecondOrder);
  ops.Add("mul_grad_grad")
      .Doc("The gradient of mul_grad.", kDoc)
      .Input("X", "left factor", Floats())
      .Input("Y", "right factor", SameTypeAs("X"))
      .Input("DOut", "the gradient of Out", SameTypeAs("X"))
      .Input("DDX", "the gradient of X@GRAD", SameTypeAs("X"), Optional())
      .Input("DDY", "the gradient of Y@GRAD", SameTypeAs("X"), Optional())
      .Output("DDOut", "the gradient of Out@GRAD", SameTypeAs("X"), Optional() | Apart())
      .Output("DX", "the gradient of X", SameTypeAs("X"), Optional() | Apart())
      .Output("DY", "the gradient of Y", SameTypeAs("X"), Optional() | Apart())
      .Attr("use_mkldnn", false, kNoEffect)
      .Attr("x_num_col_dims", 1, "the number of leading dimensions of X that form the rows", AtLeast(1))
      .Attr("y_num_col_dims", 1, "the number of leading dimensions of Y that form the rows", AtLeast(1))
      .Attr("scale_x", 1.0f, kNoEffect)
      .Attr("scale_y", std::vector<float>{1.0f}, kNoEffect)
      .Attr("scale_out", 1.0f, kNoEffect)
      .Attr("force_fp32_output", false, kNoEffect)
      .InferShape([](InferContext& c) -> Status {
        PENSTOCK_RETURN_IF_ERROR(c.ShareAll("DOut", "DDOut"));
        PENSTOCK_RETURN_IF_ERROR(c.ShareAll("X", "DX"));
        return c.ShareAll("Y", "DY");
      })
      .Kernel<Cpu, MulSecondOrderKernel, float, double>();
}

}  // namespace penstock
