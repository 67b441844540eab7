// elementwise_add_grad_grad and similar ops: the second-order gradients of elementwise ops, as in Fluid.
#include "operators/math/elementwise_second_order.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/fluid_attrs.h"
#include "operators/common/grad_args.h"
#include "operators/common/require_shape.h"
#include "operators/math/broadcast.h"

namespace penstock {
namespace {

enum class Kind { kAdd, kSub, kMul, kDiv };

const char* DocOf(Kind kind) {
  switch (kind) {
    case Kind::kAdd:
      return "DDOut = DDX + DDY; an absent input counts as 0";
    case Kind::kSub:
      return "DDOut = DDX - DDY; an absent input counts as 0";
    case Kind::kMul:
      return "DDOut = DDX * Y + X * DDY, X@GRAD = DOut * DDY, Y@GRAD = DOut * DDX; an\nabsent DDX or DDY "
             "counts as 0";
    default:
      return "DDOut = (DDX - Out * DDY) / Y, DOut = -DX * DDY, Y@GRAD = DX * (Out * DDY - DDX) / Y; "
             "an\nabsent DDX or DDY counts as 0";
  }
}

template <Kind kKind>
struct Second {
  // The slot with the shape of the result.
  static constexpr const char* kResult = kKind == Kind::kDiv ? "Out" : "DOut";

  template <typename Device, typename T>
  class Kernels : public Kernel {
   public:
    Status Prepare(KernelSetup& k) override {
      k.Bind(ddx_, ddy_, y_, ddout_, dy_);
      result_ = k.Input(kResult);
      const Argument& like_x = k.Input(kKind == Kind::kMul ? "X" : kKind == Kind::kDiv ? "DX" : "DDX");
      const Argument& x = like_x ? like_x : k.Input(kResult);
      x_ = x;
      dx_ = k.Output(kKind == Kind::kDiv ? "DOut" : "X@GRAD");
      if (ddx_) PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "DDX", x.shape));
      if (ddy_) PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "DDY", k[y_].shape));
      const int axis = k.Attr<int>("axis");
      PENSTOCK_ASSIGN_OR_RETURN(loops_, LoopsOver(k, x.shape, k[y_].shape, axis));
      const Shape out = AlignShapes(x.shape, k[y_].shape, axis)->out;
      if (kKind == Kind::kDiv) PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "DX", out));
      return RequireShape(k, kResult, out);
    }
    Status Run(KernelRun& k) override {
      const T* const ddx = ddx_ ? k[ddx_].template Data<T>() : nullptr;
      const T* const ddy = ddy_ ? k[ddy_].template Data<T>() : nullptr;
      const T *const x = k[x_].template Data<T>(), *const y = k[y_].template Data<T>();
      const T* const result = k[result_].template Data<T>();
      T* const ddout = Cleared(k, ddout_);
      T* const dx = Cleared(k, dx_);
      T* const dy = Cleared(k, dy_);
      const Dim x_step = loops_.x_moves() ? 1 : 0, y_step = loops_.y_moves() ? 1 : 0;
      loops_.ForEachRow([&](Dim o, Dim xo, Dim yo) {
        for (Dim i = 0; i < loops_.inner(); ++i, ++o, xo += x_step, yo += y_step) {
          const T a = ddx == nullptr ? T{0} : ddx[xo], b = ddy == nullptr ? T{0} : ddy[yo];
          if constexpr (kKind == Kind::kAdd || kKind == Kind::kSub) {
            if (ddout != nullptr) ddout[o] = kKind == Kind::kAdd ? a + b : a - b;
          } else if constexpr (kKind == Kind::kMul) {
            if (ddout != nullptr) ddout[o] = a * y[yo] + x[xo] * b;
            if (dx != nullptr) dx[xo] += result[o] * b;
            if (dy != nullptr) dy[yo] += result[o] * a;
          } else {
            if (ddout != nullptr) ddout[o] = (a - result[o] * b) / y[yo];
            if (dx != nullptr) dx[o] = -x[xo] * b;
            if (dy != nullptr) dy[yo] += x[xo] * (result[o] * b - a) / y[yo];
          }
        }
      });
      return OkStatus();
    }

   private:
    static T* Cleared(KernelRun& k, const Operand& output) {
      if (!output) return nullptr;
      std::ranges::fill(k[output].template Span<T>(), T{0});
      return k[output].template Data<T>();
    }
    In<"DDX"> ddx_;
    In<"DDY"> ddy_;
    In<"Y"> y_;
    Out<"DDOut"> ddout_;
    Out<"Y@GRAD"> dy_;
    Operand x_, result_, dx_;
    BroadcastLoops loops_;
  };

  static Status Infer(InferContext& c) {
    PENSTOCK_RETURN_IF_ERROR(c.ShareAll(kResult, "DDOut"));
    if (kKind == Kind::kAdd || kKind == Kind::kSub) return OkStatus();
    PENSTOCK_RETURN_IF_ERROR(kKind == Kind::kMul ? c.ShareAll("X", "X@GRAD") : c.ShareAll("Out", "DOut"));
    return c.ShareAll("Y", "Y@GRAD");
  }

  static Result<std::vector<Op>> Make(const GradRequest& request) {
    const Op& forward = request.forward;
    Op op(forward.type() + "_grad");
    const std::string ddout = request.grad_of(forward.InputName("Out@GRAD"));
    std::string dx, dy;
    if (kKind == Kind::kMul) dx = request.grad_of(forward.InputName("X"));
    if (kKind == Kind::kDiv) dx = request.grad_of(forward.InputName("Out"));
    if (kKind == Kind::kMul || kKind == Kind::kDiv) dy = request.grad_of(forward.InputName("Y"));
    if (ddout.empty() && dx.empty() && dy.empty()) return std::vector<Op>();
    if (kKind == Kind::kMul) op.AddInput("X", {forward.InputName("X")});
    op.AddInput("Y", {forward.InputName("Y")});
    if (kKind == Kind::kDiv) {
      if (forward.Output("X@GRAD").empty() || forward.OutputName("X@GRAD") == kEmptyVarName) {
        return InvalidArgument("E-backward-no-grad", forward.type(),
                               " has no second-order gradient if X has no gradient");
      }
      op.AddInput("Out", {forward.InputName("Out")}).AddInput("DX", {forward.OutputName("X@GRAD")});
    } else {
      op.AddInput("DOut", {forward.InputName("Out@GRAD")});
    }
    op.AddInput("DDX", GradOfResult(request, "X@GRAD")).AddInput("DDY", GradOfResult(request, "Y@GRAD"));
    op.AddOutput("DDOut", OneOrNone(ddout));
    if (kKind == Kind::kMul) op.AddOutput("X@GRAD", OneOrNone(dx));
    if (kKind == Kind::kDiv) op.AddOutput("DOut", OneOrNone(dx));
    if (kKind == Kind::kMul || kKind == Kind::kDiv) op.AddOutput("Y@GRAD", OneOrNone(dy));
    for (const NamedAttr& attr : forward.attrs()) op.Set(attr.name, attr.value);
    return std::vector<Op>{std::move(op)};
  }
};

template <Kind kKind>
void AddSecond(OpRegistry& ops, OpDef& forward) {
  forward.GradDef().GradMadeBy(Second<kKind>::Make);
  OpDef& def = ops.Add(forward.type() + "_grad_grad");
  def.Doc(StrCat("The gradient of ", forward.type(), "_grad."), DocOf(kKind));
  if (kKind == Kind::kMul) def.Input("X", "left operand", Floats());
  def.Input("Y", "right operand", kKind == Kind::kMul ? SameTypeAs("X") : Floats());
  if (kKind == Kind::kDiv) {
    def.Input("Out", "the quotient", SameTypeAs("Y"))
        .Input("DX", "the gradient of X, shaped like Out", SameTypeAs("Y"));
  } else {
    def.Input("DOut", "the gradient of Out", SameTypeAs("Y"));
  }
  def.Input("DDX", "the gradient of X@GRAD", SameTypeAs("Y"), Optional())
      .Input("DDY", "the gradient of Y@GRAD", SameTypeAs("Y"), Optional())
      .Output("DDOut", "the gradient of Out@GRAD", SameTypeAs("Y"), Optional() | Apart());
  if (kKind == Kind::kMul) def.Output("X@GRAD", "the gradient of X", SameTypeAs("Y"), Optional() | Apart());
  if (kKind == Kind::kDiv) def.Output("DOut", "the gradient of Out", SameTypeAs("Y"), Optional() | Apart());
  if (kKind == Kind::kMul || kKind == Kind::kDiv)
    def.Output("Y@GRAD", "the gradient of Y", SameTypeAs("Y"), Optional() | Apart());
  def.Attr("axis", -1,
           "the dimension of X with which the first dimension of Y is aligned; -1: the last dimensions are "
           "aligned",
           AtLeast(-1))
      .Attr("use_mkldnn", false, kNoEffect)
      .Attr("x_data_format", "", kNoEffect)
      .Attr("y_data_format", "", kNoEffect)
      .InferShape(Second<kKind>::Infer)
      .template Kernel<Cpu, Second<kKind>::template Kernels, float, double>();
}

}  // namespace

void AddElementwiseSecondOrder(OpRegistry& ops, OpDef& add, OpDef& sub, OpDef& mul, OpDef& div) {
  AddSecond<Kind::kAdd>(ops, add);
  AddSecond<Kind::kSub>(ops, sub);
  AddSecond<Kind::kMul>(ops, mul);
  AddSecond<Kind::kDiv>(ops, div);
}

}  // namespace penstock
