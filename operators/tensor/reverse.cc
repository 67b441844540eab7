// reverse, flip: reverse the order of elements along the given axes.
#include <string>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/require_shape.h"
#include "operators/common/strided_loops.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out[..., i, ...] = X[..., size - 1 - i, ...] along every dimension in `axis` (reverse) or `dims` (flip);
negative values count from the end. The gradient applies the same op to Out@GRAD.)";

// The attribute that names the axes.
const char* AttrOf(const Op& op) { return op.type() == "flip" ? "dims" : "axis"; }

// Returns the axes in the attribute; an error if X does not have them.
template <typename Context>
Result<std::vector<int>> ReversedExtents(const Context& c, const Shape& x) {
  if (x.rank() > StridedLoops::kMaxExtents)
    return c.Error("rank of X (", x.rank(), ") must be at most ", StridedLoops::kMaxExtents);
  std::vector<int> extents;
  const char* const attr = AttrOf(c.op());
  for (const std::int32_t axis : c.template Attr<std::vector<std::int32_t>>(attr)) {
    if (axis < -x.rank() || axis >= x.rank())
      return c.Error(attr, " holds ", axis, "; it must be in [", -x.rank(), ", ", x.rank(),
                     "), the rank of X (", x, ")");
    extents.push_back(axis < 0 ? axis + x.rank() : axis);
  }
  return extents;
}

Status InferReverse(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(ReversedExtents(c, c.ShapeOf("X")).status());
  return c.SetShape("Out", c.ShapeOf("X"));  // no LoD, as in Fluid
}

class ReverseKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_);
    PENSTOCK_ASSIGN_OR_RETURN(const std::vector<int> reversed, ReversedExtents(k, k[x_].shape));
    std::vector<bool> backwards(static_cast<std::size_t>(k[x_].shape.rank()));
    for (const int extent : reversed) backwards[static_cast<std::size_t>(extent)] = true;
    Dim stride = k[x_].shape.Count();
    for (int i = 0; i < k[x_].shape.rank(); ++i) {
      const Dim extent = k[x_].shape[i];
      stride = extent == 0 ? 0 : stride / extent;
      const bool turned = backwards[static_cast<std::size_t>(i)];
      loops_.Add(extent, turned ? -stride : stride);
      if (turned) first_ += (extent - 1) * stride;
    }
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (k[out_].bytes() == 0) return OkStatus();
    const std::size_t size = SizeOf(k[x_].dtype());
    loops_.Gather(size, k[x_].raw() + static_cast<std::size_t>(first_) * size, k[out_].raw());
    return OkStatus();
  }

 private:
  In<"X"> x_;
  Out<"Out"> out_;
  StridedLoops loops_;
  Dim first_ = 0;  // the element of X that becomes the first of Out
};

Result<std::vector<Op>> ReverseGrad(const GradRequest& request) {
  const Op& forward = request.forward;
  const std::string dx = request.grad_of(forward.InputName("X"));
  if (dx.empty()) return std::vector<Op>();
  Op grad(forward.type());
  grad.AddInput("X", {request.grad_of(forward.OutputName("Out"))}).AddOutput("Out", {dx});
  grad.Set(AttrOf(forward), forward.GetOr(AttrOf(forward), std::vector<std::int32_t>()));
  return std::vector<Op>{std::move(grad)};
}

void AddReversal(OpRegistry& ops, const std::string& type, const std::string& attr) {
  ops.Add(type)
      .Doc("Reverses the order of elements along the given axes.", kDoc)
      .Input("X", StrCat("rank at most ", StridedLoops::kMaxExtents), AnyType())
      .Output("Out", "shaped like X", SameTypeAs("X"), Apart())
      .RequiredAttr(attr, AttrKind::kInts, "the axes")
      .InferShape(InferReverse)
      .KernelForAnyType<Cpu, ReverseKernel>()
      .GradMadeBy(ReverseGrad);
}

}  // namespace

void RegisterReverse(OpRegistry& ops) {
  AddReversal(ops, "reverse", "axis");
  AddReversal(ops, "flip", "dims");
}

}  // namespace penstock
