// argsort: sorts the elements along one axis, with their original indices.
#include <algorithm>
#include <numeric>

#include "framework/op/op_registry.h"
#include "operators/common/axis_view.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out holds the elements along dimension `axis` (-1: the last) in ascending order, or in descending order if
`descending`. Indices holds the original index of each. Equal elements keep their order. The gradient of an
element of Out goes to the element of X from which it came.)";

Status InferArgsort(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(ResolveAxis(c, c.ShapeOf("X"), c.Attr<int>("axis")).status());
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("X", "Indices"));
  return c.ShareAll("X", "Out");
}

template <typename Device, typename T>
class ArgsortKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_, indices_);
    descending_ = k.Attr<bool>("descending");
    PENSTOCK_ASSIGN_OR_RETURN(const int axis, ResolveAxis(k, k[x_].shape, k.Attr<int>("axis")));
    view_ = ViewAlong(k[x_].shape, axis);
    order_ = k.Workspace(static_cast<std::size_t>(view_.width) * sizeof(std::int64_t));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const T* const x = k[x_].template Data<T>();
    T* const out = k[out_].template Data<T>();
    std::int64_t* const indices = k[indices_].template Data<std::int64_t>();
    auto* const order = reinterpret_cast<std::int64_t*>(k.Workspace(order_));
    view_.ForEachLine([&](Dim begin, Dim) {
      std::iota(order, order + view_.width, std::int64_t{0});
      // Compares by value, then by index: a total order, so that std::sort, which is unstable but needs no
      // memory, gives one result.
      std::sort(order, order + view_.width, [&](std::int64_t a, std::int64_t b) {
        const T left = x[begin + a * view_.inner], right = x[begin + b * view_.inner];
        if (Below(left, right)) return !descending_;
        if (Below(right, left)) return descending_;
        return a < b;
      });
      for (Dim i = 0; i < view_.width; ++i) {
        out[begin + i * view_.inner] = x[begin + order[i] * view_.inner];
        indices[begin + i * view_.inner] = order[i];
      }
    });
    return OkStatus();
  }

 private:
  static bool Below(T a, T b) { return a < b || (a == a && b != b); }

  In<"X"> x_;
  Out<"Out"> out_;
  Out<"Indices"> indices_;
  bool descending_ = false;
  AxisView view_;
  WorkspaceId order_;
};

template <typename Device, typename T>
class ArgsortGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(indices_, dout_, dx_);
    const Shape& x = k.Input("X").shape;
    PENSTOCK_ASSIGN_OR_RETURN(const int axis, ResolveAxis(k, x, k.Attr<int>("axis")));
    view_ = ViewAlong(x, axis);
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "Indices", x));
    return RequireShape(k, "Out@GRAD", x);
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    const auto indices = k[indices_].template Span<std::int64_t>();
    for (const std::int64_t at : indices) {
      if (at >= 0 && at < view_.width) continue;
      return InvalidArgument("E-op-index", "argsort_grad: index ", at, " is outside the extent of ",
                             view_.width);
    }
    const T* const dout = k[dout_].template Data<T>();
    T* const dx = k[dx_].template Data<T>();
    std::ranges::fill(k[dx_].template Span<T>(), T{0});
    view_.ForEachLine([&](Dim begin, Dim) {
      for (Dim i = 0; i < view_.width; ++i) {
        const Dim at = begin + i * view_.inner;
        dx[begin + indices[static_cast<std::size_t>(at)] * view_.inner] = dout[at];
      }
    });
    return OkStatus();
  }

 private:
  In<"Indices"> indices_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  AxisView view_;
};

}  // namespace

void RegisterArgsort(OpRegistry& ops) {
  ops.Add("argsort")
      .Doc("Sorts the elements along one axis.", kDoc)
      .Input("X", "of rank 1 or more", Numbers())
      .Output("Out", "the sorted elements", SameTypeAs("X"), Apart())
      .Output("Indices", "the original indices of the elements", Only(DType::kInt64))
      .Attr("axis", -1, "the axis along which to sort")
      .Attr("descending", false, "whether to sort in descending order")
      .Nan("NaN is larger than any number.")
      .InferShape(InferArgsort)
      .Kernel<Cpu, ArgsortKernel, float, double, std::int32_t, std::int64_t>()
      .Grad({.reads = {"X"}, .reads_outputs = {"Indices"}, .yields = {"X"}, .of = {"Out"}, .apart = {"X"}})
      .GradKernel<Cpu, ArgsortGradKernel, float, double>();
}

}  // namespace penstock
