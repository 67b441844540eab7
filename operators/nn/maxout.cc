// maxout: the maximum of each group of adjacent channels.
#include <algorithm>

#include "framework/op/op_registry.h"
#include "operators/common/axis_view.h"
#include "operators/common/nan.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Channel c of Out is the elementwise maximum of channels c * groups to c * groups + groups - 1 of X. The
channels are dimension `axis` of X: 1, 3 or -1 (the last). The gradient goes to the first channel that holds
the maximum. Goodfellow et al.: "Maxout networks", ICML 2013.)";

template <typename Context>
Result<int> ChannelsOf(const Context& c, const Shape& x) {
  PENSTOCK_ASSIGN_OR_RETURN(const int axis, ResolveAxis(c, x, c.template Attr<int>("axis")));
  const int groups = c.template Attr<int>("groups");
  const int given = c.template Attr<int>("axis");
  if (given != 1 && given != 3 && given != -1) return c.Error("axis (", given, ") must be 1, 3 or -1");
  if (x[axis] == kUnknownDim || x[axis] % groups == 0) return axis;
  return c.Error("channels of X (", x[axis], ") must be divisible by groups (", groups, ")");
}

Status InferMaxout(InferContext& c) {
  Shape out = c.ShapeOf("X");
  PENSTOCK_ASSIGN_OR_RETURN(const int axis, ChannelsOf(c, out));
  if (out[axis] != kUnknownDim) out.Set(axis, out[axis] / c.Attr<int>("groups"));
  return c.SetShape("Out", out);
}

// The groups: each is a line of `groups` channels whose elements are `inner` apart.
template <typename Context>
Result<AxisView> GroupsOf(const Context& c, const Shape& x) {
  PENSTOCK_ASSIGN_OR_RETURN(const int axis, ChannelsOf(c, x));
  const AxisView channels = ViewAlong(x, axis);
  const Dim groups = c.template Attr<int>("groups");
  return AxisView{channels.outer * (channels.width / groups), groups, channels.inner};
}

template <typename Device, typename T>
class MaxoutKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_);
    PENSTOCK_ASSIGN_OR_RETURN(view_, GroupsOf(k, k[x_].shape));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const T* const x = k[x_].template Data<T>();
    T* const out = k[out_].template Data<T>();
    view_.ForEachLine([&](Dim begin, Dim line) {
      T largest = x[begin];
      for (Dim i = 1; i < view_.width; ++i) largest = MaxOrNan(largest, x[begin + i * view_.inner]);
      out[line] = largest;
    });
    return OkStatus();
  }

 private:
  In<"X"> x_;
  Out<"Out"> out_;
  AxisView view_;
};

template <typename Device, typename T>
class MaxoutGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_, dout_, dx_);
    PENSTOCK_ASSIGN_OR_RETURN(view_, GroupsOf(k, k[x_].shape));
    PENSTOCK_RETURN_IF_ERROR(RequireCount(k, "Out", view_.lines()));
    return RequireCount(k, "Out@GRAD", view_.lines());
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    const T* const x = k[x_].template Data<T>();
    const T* const out = k[out_].template Data<T>();
    const T* const dout = k[dout_].template Data<T>();
    T* const dx = k[dx_].template Data<T>();
    std::ranges::fill(k[dx_].template Span<T>(), T{0});
    view_.ForEachLine([&](Dim begin, Dim line) {
      for (Dim i = 0; i < view_.width; ++i) {
        const T element = x[begin + i * view_.inner];
        if (element != out[line] && !(IsNan(element) && IsNan(out[line]))) continue;
        dx[begin + i * view_.inner] = dout[line];
        break;
      }
    });
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Out"> out_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  AxisView view_;
};

}  // namespace

void RegisterMaxout(OpRegistry& ops) {
  ops.Add("maxout")
      .Doc("The maximum of each group of adjacent channels.", kDoc)
      .Input("X", "images, rank 4", Floats())
      .Output("Out", "X with fewer channels", SameTypeAs("X"))
      .RequiredAttr("groups", AttrKind::kInt, "the number of channels per group", AtLeast(1))
      .Attr("axis", 1, "the dimension of X that holds the channels")
      .Nan("the maximum of a group with a NaN is NaN; its gradient goes to the first NaN of the group.")
      .InferShape(InferMaxout)
      .Kernel<Cpu, MaxoutKernel, float, double>()
      .Grad({.reads = {"X"}, .reads_outputs = {"Out"}, .yields = {"X"}, .apart = {"X"}})
      .GradKernel<Cpu, MaxoutGradKernel, float, double>();
}

}  // namespace penstock
