// stack: joins tensors of one shape along a new axis. unstack, unbind: the inverse.
#include <span>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/strips.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Y has one dimension more than each X: dimension `axis`, along which X[0], X[1], ... are stacked. A negative
axis counts from the end of the shape of Y. If the rows of Y are those of X, Y has the LoD of X[0].)";

constexpr char kUnstackDoc[] = R"(
Y[i] is the slice of X at index i of dimension `axis`, without that dimension. A negative axis counts from the
end. The gradient stacks the gradients of Y.)";

// Returns the position of the new dimension in Y, or an error.
template <typename Context>
Status ResolveAxis(const Context& c, int rank_of_x, int& axis) {
  axis = c.template Attr<int>("axis");
  if (axis < 0) axis += rank_of_x + 1;
  if (axis >= 0 && axis <= rank_of_x) return OkStatus();
  return c.Error("axis (", c.template Attr<int>("axis"), ") must be in [", -rank_of_x - 1, ", ", rank_of_x,
                 "]");
}

Status InferStack(InferContext& c) {
  const Shape& first = c.ShapeOf("X");
  int axis = 0;
  PENSTOCK_RETURN_IF_ERROR(ResolveAxis(c, first.rank(), axis));
  for (int i = 1; i < c.InputCount("X"); ++i) {
    if (!Compatible(c.ShapeOf("X", i), first)) {
      return c.Error("shape of X[", i, "] (", c.ShapeOf("X", i), ") must equal that of X[0] (", first, ")");
    }
    if (c.DTypeOf("X", i) != c.DTypeOf("X")) {
      return c.Error("element type of X[", i, "] (", DTypeName(c.DTypeOf("X", i)),
                     ") must equal that of X[0] (", DTypeName(c.DTypeOf("X")), ")");
    }
  }
  if (axis != 0) c.ShareLod("X", "Y");
  Shape y = first.First(axis);
  y.Append(c.InputCount("X"));
  return c.SetShape("Y", Concat(y, first.From(axis)));
}

Status InferStackGrad(InferContext& c) {
  const Shape& dy = c.ShapeOf("Y@GRAD");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("Y@GRAD", 0));
  int axis = 0;
  PENSTOCK_RETURN_IF_ERROR(ResolveAxis(c, dy.rank() - 1, axis));
  // Counts also gradients that are not requested.
  const int parts = static_cast<int>(c.op().Output("X@GRAD").size());
  if (!Compatible(dy[axis], parts)) {
    return c.Error("extent ", axis, " of Y@GRAD (", dy[axis], ") must equal the number of gradients (", parts,
                   ")");
  }
  for (int i = 0; i < parts; ++i) {
    PENSTOCK_RETURN_IF_ERROR(c.SetShape("X@GRAD", i, Concat(dy.First(axis), dy.From(axis + 1))));
    c.SetDType("X@GRAD", c.DTypeOf("Y@GRAD"), i);
  }
  return OkStatus();
}

// Each X is viewed with a dimension of 1 at the position of the new one.
Status Lay(const KernelSetup& k, const TensorDesc& y, std::span<const Argument> parts, Strips& strips) {
  int axis = 0;
  PENSTOCK_RETURN_IF_ERROR(ResolveAxis(k, y.shape.rank() - 1, axis));
  strips.Prepare(parts);
  strips.Lay(y.shape, axis, SizeOf(y.dtype), std::vector<Dim>(parts.size(), 1));
  return OkStatus();
}

class StackKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(y_);
    return Lay(k, k[y_], k.Inputs("X"), strips_);
  }
  Status Run(KernelRun& k) override {
    strips_.Join(k, k[y_]);
    return OkStatus();
  }

 private:
  Out<"Y"> y_;
  Strips strips_;
};

class StackGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(dy_);
    return Lay(k, k[dy_], k.Outputs("X@GRAD"), strips_);
  }
  Status Run(KernelRun& k) override {
    strips_.Cut(k, k[dy_]);
    return OkStatus();
  }

 private:
  In<"Y@GRAD"> dy_;
  Strips strips_;
};

// The parts in slot `out`, one for each index of dimension `axis` of X, with the shape of X without it.
Status InferCut(InferContext& c, const char* out) {
  const Shape& x = c.ShapeOf("X");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("X", 0));
  int axis = 0;
  PENSTOCK_RETURN_IF_ERROR(ResolveAxis(c, x.rank() - 1, axis));
  const int parts = c.OutputCount(out);
  if (!Compatible(x[axis], parts))
    return c.Error("extent ", axis, " of X (", x[axis], ") must equal the number of outputs (", parts, ")");
  for (int i = 0; i < parts; ++i) {
    PENSTOCK_RETURN_IF_ERROR(c.SetShape(out, i, Concat(x.First(axis), x.From(axis + 1))));
    if (axis != 0) c.ShareLod("X", 0, out, i);
  }
  return OkStatus();
}

Status InferUnstack(InferContext& c) {
  if (c.Attr<int>("num") != c.OutputCount("Y"))
    return c.Error("num (", c.Attr<int>("num"), ") must equal the number of outputs (", c.OutputCount("Y"),
                   ")");
  return InferCut(c, "Y");
}

Status InferUnstackGrad(InferContext& c) {
  const Shape& first = c.ShapeOf("Y@GRAD");
  int axis = 0;
  PENSTOCK_RETURN_IF_ERROR(ResolveAxis(c, first.rank(), axis));
  for (int i = 1; i < c.InputCount("Y@GRAD"); ++i) {
    if (Compatible(c.ShapeOf("Y@GRAD", i), first) && c.DTypeOf("Y@GRAD", i) == c.DTypeOf("Y@GRAD")) continue;
    return c.Error("Y@GRAD[", i, "] (", DTypeName(c.DTypeOf("Y@GRAD", i)), c.ShapeOf("Y@GRAD", i),
                   ") must have the type and shape of Y@GRAD[0] (", DTypeName(c.DTypeOf("Y@GRAD")), first,
                   ")");
  }
  Shape x = first.First(axis);
  x.Append(c.InputCount("Y@GRAD"));
  c.SetDType("X@GRAD", c.DTypeOf("Y@GRAD"));
  return c.SetShape("X@GRAD", Concat(x, first.From(axis)));
}

// Views X as the parts in the first output slot.
class CutStackKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_);
    return Lay(k, k[x_], k.Outputs(k.op().outputs().front().name), strips_);
  }
  Status Run(KernelRun& k) override {
    strips_.Cut(k, k[x_]);
    return OkStatus();
  }

 private:
  In<"X"> x_;
  Strips strips_;
};

class UnstackGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(dx_);
    return dx_ ? Lay(k, k[dx_], k.Inputs("Y@GRAD"), strips_) : OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (dx_) strips_.Join(k, k[dx_]);
    return OkStatus();
  }

 private:
  Out<"X@GRAD"> dx_;
  Strips strips_;
};

Result<std::vector<Op>> UnbindGrad(const GradRequest& request) {
  const Op& forward = request.forward;
  const std::string dx = request.grad_of(forward.InputName("X"));
  if (dx.empty()) return std::vector<Op>();
  std::vector<std::string> grads;
  for (const std::string& name : forward.Output("Out")) grads.push_back(request.grad_of(name));
  Op grad("stack");
  grad.AddInput("X", grads).AddOutput("Y", {dx}).Set("axis", forward.GetOr("axis", std::int32_t{0}));
  return std::vector<Op>{std::move(grad)};
}

}  // namespace

void RegisterStack(OpRegistry& ops) {
  ops.Add("stack")
      .Doc("Stacks tensors of one shape along a new axis.", kDoc)
      .Input("X", "tensors of one shape and type", AnyType(), Repeated())
      .Output("Y", "the stacked tensors", SameTypeAs("X"))
      .Attr("axis", 0, "the position of the new dimension in Y")
      .InferShape(InferStack)
      .KernelForAnyType<Cpu, StackKernel>()
      .Grad({.yields = {"X"}})
      .GradDef()
      .InferShape(InferStackGrad)
      .KernelForAnyType<Cpu, StackGradKernel>();
  ops.Add("unstack")
      .Doc("Splits a tensor into its slices along one axis.", kUnstackDoc)
      .Input("X", "of rank 1 or more", AnyType())
      .Output("Y", "one for each index of the dimension", SameTypeAs("X"), Repeated() | Apart())
      .Attr("axis", 0, "the dimension of X that is removed")
      .RequiredAttr("num", AttrKind::kInt, "the number of outputs")
      .InferShape(InferUnstack)
      .KernelForAnyType<Cpu, CutStackKernel>()
      .Grad({.yields = {"X"}, .apart = {"X"}})
      .GradDef()
      .InferShape(InferUnstackGrad)
      .KernelForAnyType<Cpu, UnstackGradKernel>();
  ops.Add("unbind")
      .Doc("Splits a tensor into its slices along one axis.", kUnstackDoc)
      .Input("X", "of rank 1 or more", AnyType())
      .Output("Out", "one for each index of the dimension", SameTypeAs("X"), Repeated() | Apart())
      .Attr("axis", 0, "the dimension of X that is removed")
      .InferShape([](InferContext& c) { return InferCut(c, "Out"); })
      .KernelForAnyType<Cpu, CutStackKernel>()
      .GradMadeBy(UnbindGrad);
}

}  // namespace penstock
