// fused_elemwise_activation: combines a sum or product of two tensors with a function of one element.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "framework/op/op_registry.h"
#include "framework/vector/functions.h"
#include "operators/common/grad_args.h"
#include "operators/common/nan.h"
#include "operators/common/require_shape.h"
#include "operators/math/broadcast.h"

namespace penstock {
namespace {

using Names = std::vector<std::string>;

constexpr char kDoc[] = R"(
functor_list names a binary function (elementwise_add or elementwise_mul) and a unary function (scale, relu,
tanh or sigmoid), the outer one first:

[unary, binary]  Out = unary(binary(X, Y))      IntermediateOut = binary(X, Y)
[binary, unary]  Out = binary(X, unary(Y))      IntermediateOut = unary(Y)

scale multiplies by the attribute `scale`. X and Y are broadcast as in elementwise_add: the dimensions of the
operand of lower rank are aligned with those of the other, starting at `axis` (-1: with the last ones). The op
writes IntermediateOut only with save_intermediate_out; otherwise the gradient computes it again. The gradient
needs X only for elementwise_mul.)";

constexpr char kGradDoc[] = R"(
The gradients of X, Y and IntermediateOut. As in Fluid, functor_list has the names of the forward op, each
followed by _grad.)";

enum class Unary { kScale, kRelu, kTanh, kSigmoid };

// The contents of functor_list.
struct Composition {
  bool multiplies = false;  // the binary function is a product, not a sum
  Unary unary = Unary::kScale;
  bool unary_is_outer = false;
};

std::optional<Unary> UnaryOf(const std::string& name) {
  if (name == "scale") return Unary::kScale;
  if (name == "relu") return Unary::kRelu;
  if (name == "tanh") return Unary::kTanh;
  if (name == "sigmoid") return Unary::kSigmoid;
  return std::nullopt;
}

// Parses the names, with or without the suffix of a gradient; nullopt unless one is binary and the other
// unary.
std::optional<Composition> CompositionOf(Names names) {
  if (names.size() != 2) return std::nullopt;
  for (std::string& name : names) {
    if (name.ends_with("_grad")) name.resize(name.size() - 5);
  }
  const auto is_binary = [](const std::string& name) {
    return name == "elementwise_add" || name == "elementwise_mul";
  };
  Composition made;
  made.unary_is_outer = is_binary(names[1]);
  const std::string& binary = names[made.unary_is_outer ? 1 : 0];
  const std::optional<Unary> unary = UnaryOf(names[made.unary_is_outer ? 0 : 1]);
  if (!is_binary(binary) || !unary) return std::nullopt;
  made.multiplies = binary == "elementwise_mul";
  made.unary = *unary;
  return made;
}

AttrCheck TwoFunctions() {
  return {[](const Attr& given) -> std::optional<std::string> {
    const auto* names = std::get_if<Names>(&given);
    if (names == nullptr || CompositionOf(*names)) return std::nullopt;
    return "one of elementwise_add and elementwise_mul, and one of scale, relu, tanh and sigmoid, in either "
           "order";
  }};
}

// Out has the shape and the LoD of X, unless Y is larger.
bool FollowsX(const Shape& x, const Shape& y) {
  if (x.rank() != y.rank()) return x.rank() > y.rank();
  for (int i = 0; i < x.rank(); ++i) {
    if (x[i] < y[i] && x[i] != kUnknownDim) return false;
  }
  return true;
}

Status InferFused(InferContext& c) {
  const Shape &x = c.ShapeOf("X"), &y = c.ShapeOf("Y");
  const Result<AlignedShapes> shapes = AlignShapes(x, y, c.Attr<std::int32_t>("axis"));
  if (!shapes.ok()) return c.Error(shapes.status().message());
  const char* const whole = FollowsX(x, y) ? "X" : "Y";
  if (c.Attr<bool>("save_intermediate_out")) {
    if (!c.HasOutput("IntermediateOut")) return c.Error("save_intermediate_out needs output IntermediateOut");
    const bool outer = CompositionOf(c.Attr<Names>("functor_list"))->unary_is_outer;
    PENSTOCK_RETURN_IF_ERROR(c.ShareAll(outer ? whole : "Y", "IntermediateOut"));
    PENSTOCK_RETURN_IF_ERROR(c.SetShape("IntermediateOut", outer ? shapes->out : y));
  }
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll(whole, "Out"));
  return c.SetShape("Out", shapes->out);
}

// The functions of one op and their derivatives.
template <typename T>
struct Functions {
  Composition made;
  T factor = 1;  // the factor of scale

  void Prepare(const KernelSetup& k) {
    made = *CompositionOf(k.Attr<Names>("functor_list"));
    factor = static_cast<T>(k.Attr<float>("scale"));
  }
  // Computes out = unary(in) for `count` elements; both may be one array.
  void Apply(const T* in, T* out, Dim count) const {
    switch (made.unary) {
      case Unary::kScale:
        for (Dim i = 0; i < count; ++i) out[i] = in[i] * factor;
        return;
      case Unary::kRelu:
        for (Dim i = 0; i < count; ++i) out[i] = MaxOrNan(in[i], T{0});
        return;
      case Unary::kTanh:
        Tanh(in, out, count);
        return;
      case Unary::kSigmoid:
        Sigmoid(in, out, count);
        return;
    }
  }
  static void Tanh(const T* in, T* out, Dim count) {
    if constexpr (std::is_same_v<T, float>) return vec::Tanh(in, out, static_cast<std::size_t>(count));
    for (Dim i = 0; i < count; ++i) out[i] = std::tanh(in[i]);
  }
  static void Sigmoid(const T* in, T* out, Dim count) {
    if constexpr (std::is_same_v<T, float>) return vec::Sigmoid(in, out, static_cast<std::size_t>(count));
    for (Dim i = 0; i < count; ++i) out[i] = T{1} / (T{1} + std::exp(-in[i]));
  }
  // Returns the derivative of unary, given its result.
  T Slope(T out, T dout) const {
    switch (made.unary) {
      case Unary::kScale:
        return dout * factor;
      case Unary::kRelu:
        return Choose(out > T{0}, dout, T{0}, out);
      case Unary::kTanh:
        return dout * (T{1} - out * out);
      case Unary::kSigmoid:
        return dout * out * (T{1} - out);
    }
    return dout;
  }
};

// Calls visit(element of the result, of X, of Y) for each element of the result.
template <typename Visit>
void EachElement(const BroadcastLoops& loops, Visit visit) {
  const Dim n = loops.inner(), x_step = loops.x_moves() ? 1 : 0, y_step = loops.y_moves() ? 1 : 0;
  loops.ForEachRow([&](Dim out, Dim x, Dim y) {
    for (Dim i = 0; i < n; ++i) visit(out + i, x + i * x_step, y + i * y_step);
  });
}

template <typename Device, typename T>
class FusedElemwiseKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    f_.Prepare(k);
    k.Bind(x_, y_, out_);
    if (k.Attr<bool>("save_intermediate_out")) k.Bind(between_);
    if (!f_.made.unary_is_outer && !between_)
      scratch_ = k.Workspace(static_cast<std::size_t>(k[y_].shape.Count()) * sizeof(T));
    PENSTOCK_ASSIGN_OR_RETURN(loops_, LoopsOver(k, k[x_].shape, k[y_].shape, k.Attr<std::int32_t>("axis")));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const T* const x = std::as_const(k[x_]).template Data<T>();
    const T* const y = std::as_const(k[y_]).template Data<T>();
    T* const out = k[out_].template Data<T>();
    if (f_.made.unary_is_outer) {
      T* const between = between_ ? k[between_].template Data<T>() : out;
      Combine(x, y, between);
      f_.Apply(between, out, k[out_].shape().Count());
    } else {
      T* const between =
          between_ ? k[between_].template Data<T>() : reinterpret_cast<T*>(k.Workspace(scratch_));
      f_.Apply(y, between, k[y_].shape().Count());
      Combine(x, between, out);
    }
    return OkStatus();
  }

 private:
  void Combine(const T* x, const T* y, T* out) const {
    if (f_.made.multiplies) {
      EachElement(loops_, [=](Dim o, Dim i, Dim j) { out[o] = x[i] * y[j]; });
    } else {
      EachElement(loops_, [=](Dim o, Dim i, Dim j) { out[o] = x[i] + y[j]; });
    }
  }

  Functions<T> f_;
  In<"X"> x_;
  In<"Y"> y_;
  Out<"Out"> out_;
  Out<"IntermediateOut"> between_;
  BroadcastLoops loops_;
  WorkspaceId scratch_;
};

// If the unary function is outside, the gradient of IntermediateOut is that of Out times the derivative; X
// and Y receive it. If it is inside, X and IntermediateOut receive the gradient of Out, and Y receives that
// of IntermediateOut times the derivative.
template <typename Device, typename T>
class FusedElemwiseGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    f_.Prepare(k);
    k.Bind(y_, out_, dout_, dx_, dy_, dbetween_);
    if (k.Attr<bool>("save_intermediate_out")) k.Bind(between_);
    if (f_.made.multiplies && !k.Input("X")) return k.Error("elementwise_mul needs input X");
    // A sum does not need the elements of X; Out then has the shape of X.
    const Argument& x = k.Input(k.Input("X") ? "X" : "Out@GRAD");
    x_ = x;
    const int axis = k.Attr<std::int32_t>("axis");
    PENSTOCK_ASSIGN_OR_RETURN(loops_, LoopsOver(k, x.shape, k[y_].shape, axis));
    // AlignShapes cannot fail, because LoopsOver has aligned the shapes.
    const Shape whole = AlignShapes(x.shape, k[y_].shape, axis)->out;
    const Shape& inner = f_.made.unary_is_outer ? whole : k[y_].shape;
    for (const char* slot : {"Out", "Out@GRAD"}) PENSTOCK_RETURN_IF_ERROR(RequireShape(k, slot, whole));
    if (between_) PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "IntermediateOut", inner));
    for (const char* slot : {"X", "IntermediateOut", "Out", "Out@GRAD"}) {
      if (k.Input(slot)) PENSTOCK_RETURN_IF_ERROR(RequireType(k, slot, k[y_].dtype));
    }
    const auto bytes = static_cast<std::size_t>(inner.Count()) * sizeof(T);
    between_scratch_ = k.Workspace(bytes);
    dbetween_scratch_ = k.Workspace(bytes);
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    const T* const x = std::as_const(k[x_]).template Data<T>();
    const T* const y = std::as_const(k[y_]).template Data<T>();
    const T* const dout = std::as_const(k[dout_]).template Data<T>();
    T* const dbetween = dbetween_ ? k[dbetween_].template Data<T>() : Scratch(k, dbetween_scratch_);
    if (f_.made.unary_is_outer) {
      const T* const out = std::as_const(k[out_]).template Data<T>();
      const Dim count = k[dout_].count();
      for (Dim i = 0; i < count; ++i) dbetween[i] = f_.Slope(out[i], dout[i]);
      if (dx_) OfX(k, y, dbetween);
      if (dy_) OfY(k, x, dbetween, k[dy_].template Data<T>());
      return OkStatus();
    }
    const T* const between = Between(k, y);
    if (dx_) OfX(k, between, dout);
    if (!dy_ && !dbetween_) return OkStatus();
    OfY(k, x, dout, dbetween);
    if (!dy_) return OkStatus();
    T* const dy = k[dy_].template Data<T>();
    const Dim count = k[y_].count();
    for (Dim j = 0; j < count; ++j) dy[j] = f_.Slope(between[j], dbetween[j]);
    return OkStatus();
  }

 private:
  static T* Scratch(KernelRun& k, WorkspaceId id) { return reinterpret_cast<T*>(k.Workspace(id)); }

  // Returns unary(Y), saved or computed again.
  const T* Between(KernelRun& k, const T* y) const {
    if (between_) return std::as_const(k[between_]).template Data<T>();
    T* const made = Scratch(k, between_scratch_);
    f_.Apply(y, made, k[y_].shape().Count());
    return made;
  }
  // Computes the gradients of the operands of the binary function from that of its result.
  void OfX(KernelRun& k, const T* y, const T* d) {
    T* const dx = k[dx_].template Data<T>();
    std::fill_n(dx, k[x_].shape().Count(), T{0});
    if (f_.made.multiplies) {
      EachElement(loops_, [=](Dim o, Dim i, Dim j) { dx[i] += d[o] * y[j]; });
    } else {
      EachElement(loops_, [=](Dim o, Dim i, Dim) { dx[i] += d[o]; });
    }
  }
  void OfY(KernelRun& k, const T* x, const T* d, T* dy) const {
    std::fill_n(dy, k[y_].count(), T{0});
    if (f_.made.multiplies) {
      EachElement(loops_, [=](Dim o, Dim i, Dim j) { dy[j] += d[o] * x[i]; });
    } else {
      EachElement(loops_, [=](Dim o, Dim, Dim j) { dy[j] += d[o]; });
    }
  }

  Functions<T> f_;
  In<"Y"> y_;
  In<"Out"> out_;
  In<"IntermediateOut"> between_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  Out<"Y@GRAD"> dy_;
  Out<"IntermediateOut@GRAD"> dbetween_;
  Operand x_;
  BroadcastLoops loops_;
  WorkspaceId between_scratch_, dbetween_scratch_;
};

Result<std::vector<Op>> MakeFusedGrad(const GradRequest& request) {
  const Op& forward = request.forward;
  Op grad("fused_elemwise_activation_grad");
  bool wanted = false;
  for (const char* slot : {"X", "Y"}) {
    std::string name = request.grad_of(forward.InputName(slot));
    wanted = wanted || !name.empty();
    grad.AddInput(slot, forward.Input(slot));
    grad.AddOutput(StrCat(slot, kGradSuffix), OneOrNone(std::move(name)));
  }
  if (!wanted) return std::vector<Op>{};
  grad.AddInput("Out", forward.Output("Out"));
  const bool keeps = forward.GetOr("save_intermediate_out", false);
  grad.AddInput("IntermediateOut", keeps ? forward.Output("IntermediateOut") : Names());
  grad.AddInput("Out@GRAD", {request.grad_of(forward.OutputName("Out"))});
  for (const NamedAttr& attr : forward.attrs()) grad.Set(attr.name, attr.value);
  Names names = forward.GetOr<Names>("functor_list", {});
  for (std::string& name : names) name += "_grad";
  grad.Set("functor_list", names);
  return std::vector<Op>{std::move(grad)};
}

Status InferFusedGrad(InferContext& c) {
  const bool outer = CompositionOf(c.Attr<Names>("functor_list"))->unary_is_outer;
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll(c.HasInput("X") ? "X" : "Out@GRAD", "X@GRAD"));
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("Y", "Y@GRAD"));
  return c.ShareAll(outer ? "Out@GRAD" : "Y", "IntermediateOut@GRAD");
}

}  // namespace

void RegisterFusedElemwiseActivation(OpRegistry& ops) {
  ops.Add("fused_elemwise_activation")
      .Doc("Combines a sum or product of X and Y with a function of one element.", kDoc)
      .Input("X", "left operand", Floats())
      .Input("Y", "right operand; its shape is aligned with X's by `axis`", SameTypeAs("X"))
      .Output("Out", "the result, in the broadcast shape", SameTypeAs("X"))
      .Output("IntermediateOut", "the result of the inner function", SameTypeAs("X"),
              Intermediate() | Apart())
      .Attr("axis", -1,
            "the dimension of X with which the first dimension of Y is aligned; -1: the last dimensions are "
            "aligned",
            AtLeast(-1))
      .Attr("scale", 0.0f, "the factor of the function scale")
      .Attr("save_intermediate_out", false, "whether to write IntermediateOut")
      .RequiredAttr("functor_list", AttrKind::kStrings, "the names of both functions, the outer one first",
                    TwoFunctions())
      .InferShape(InferFused)
      .Kernel<Cpu, FusedElemwiseKernel, float, double>()
      .Grad({.reads = {"Y"}, .reads_outputs = {"Out"}, .yields = {"X", "Y"}, .apart = {"X", "Y"}})
      .GradMadeBy(MakeFusedGrad)
      .GradKernel<Cpu, FusedElemwiseGradKernel, float, double>()
      .GradDef()
      .Doc("The gradient of fused_elemwise_activation.", kGradDoc)
      .Input("X", "left operand; not needed for a sum", AnyType(), Optional())
      .Input("IntermediateOut", "the result of the inner function, if it was saved", AnyType(), Optional())
      .Output("IntermediateOut@GRAD", "the gradient of IntermediateOut", AnyType(), Optional() | Apart())
      .KernelTypeFrom("Y")
      .InferShape(InferFusedGrad);
}

}  // namespace penstock
