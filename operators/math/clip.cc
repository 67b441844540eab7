// clip: limits each element to an interval. clip_by_norm: limits the norm of a tensor.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <type_traits>

#include "framework/op/op_registry.h"
#include "framework/vector/piecewise.h"
#include "operators/common/merge_rows.h"
#include "operators/common/nan.h"
#include "operators/common/parallel.h"
#include "operators/common/reduce.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kClipDoc[] = R"(
Out = min(max(X, min), max)

The gradient is that of Out where X is within the bounds, and 0 elsewhere. Min and Max, if given, replace the
attributes; each has one element. For selected rows, duplicate rows are summed first.)";

constexpr char kNormDoc[] = R"(
Out = X                      if |X| <= max_norm
Out = X * max_norm / |X|     otherwise

where |X| is the square root of the sum of all squares, computed in double precision. For selected rows,
duplicate rows are summed first.)";

Status InferClip(InferContext& c) {
  for (const char* bound : {"Min", "Max"}) {
    if (!c.HasInput(bound) || Compatible(c.ShapeOf(bound).Count(), 1)) continue;
    return c.Error(bound, " (", c.ShapeOf(bound), ") must hold one element");
  }
  if (c.Attr<float>("max") < c.Attr<float>("min") && !c.HasInput("Min") && !c.HasInput("Max")) {
    return c.Error("max (", c.Attr<float>("max"), ") must not be below min (", c.Attr<float>("min"), ")");
  }
  return c.ShareAll("X", "Out");
}

// The two bounds, from attributes or from tensors.
template <typename T>
class Bounds {
 public:
  void Prepare(const KernelSetup& k) {
    min_ = static_cast<T>(k.Attr<float>("min"));
    max_ = static_cast<T>(k.Attr<float>("max"));
    k.Bind(min_given_, max_given_);
  }
  T Min(KernelRun& k) const { return min_given_ ? *k[min_given_].template Data<T>() : min_; }
  T Max(KernelRun& k) const { return max_given_ ? *k[max_given_].template Data<T>() : max_; }

 private:
  In<"Min"> min_given_;
  In<"Max"> max_given_;
  T min_ = 0, max_ = 0;
};

template <typename Device, typename T>
class ClipKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    values_.Prepare(k.Input("X"), k.Output("Out"));
    bounds_.Prepare(k);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(values_.template Load<T>(k, "clip"));
    const Tensor& x = values_.From(k);
    Tensor& out = values_.To(k);
    const T low = bounds_.Min(k), high = bounds_.Max(k);
    const T* const from = x.Data<T>();
    T* const to = out.Data<T>();
    ForElements(x.count(), StreamNs<T>(2), [=](Dim begin, Dim end) {
      if constexpr (std::is_same_v<T, float>) {
        const auto count = static_cast<std::size_t>(end - begin);
        if (!IsNan(low) && !IsNan(high)) return vec::Clip(low, high, from + begin, to + begin, count);
      }
      for (Dim i = begin; i < end; ++i) to[i] = MinOrNan(MaxOrNan(from[i], low), high);
    });
    return OkStatus();
  }

 private:
  Bounds<T> bounds_;
  DenseOrMergedRows values_;
};

template <typename Device, typename T>
class ClipGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, dout_, dx_);
    bounds_.Prepare(k);
    return RequireShape(k, "Out@GRAD", k[x_].shape);
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    const T low = bounds_.Min(k), high = bounds_.Max(k);
    const T* const x = k[x_].template Data<T>();
    const T* const dout = k[dout_].template Data<T>();
    T* const dx = k[dx_].template Data<T>();
    ForElements(k[x_].count(), StreamNs<T>(3), [=](Dim begin, Dim end) {
      if constexpr (std::is_same_v<T, float>) {
        const auto count = static_cast<std::size_t>(end - begin);
        if (!IsNan(low) && !IsNan(high))
          return vec::BetweenGrad(low, high, 1, x + begin, dout + begin, dx + begin, count);
      }
      for (Dim i = begin; i < end; ++i)
        dx[i] = Choose(x[i] > low && x[i] < high, dout[i], T{0}, x[i], low, high);
    });
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  Bounds<T> bounds_;
};

template <typename Device, typename T>
class ClipByNormKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    values_.Prepare(k.Input("X"), k.Output("Out"));
    max_norm_ = static_cast<double>(k.Attr<float>("max_norm"));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(values_.template Load<T>(k, "clip_by_norm"));
    const Tensor& x = values_.From(k);
    Tensor& out = values_.To(k);
    const T* const from = x.Data<T>();
    T* const to = out.Data<T>();
    const std::int64_t count = x.count();
    const double norm = std::sqrt(TotalOfSquares(from, count));
    const T factor = norm <= max_norm_ ? T{1} : static_cast<T>(max_norm_ / norm);
    ForElements(count, StreamNs<T>(2), [&](Dim begin, Dim end) {
      for (Dim i = begin; i < end; ++i) to[i] = from[i] * factor;
    });
    return OkStatus();
  }

 private:
  double max_norm_ = 0;
  DenseOrMergedRows values_;
};

}  // namespace

void RegisterClip(OpRegistry& ops) {
  ops.Add("clip")
      .Doc("Limits each element to an interval.", kClipDoc)
      .Input("X", "any shape, or selected rows", Floats(), TensorOrRows())
      .Input("Min", "the lower bound; replaces the attribute", SameTypeAs("X"), Optional())
      .Input("Max", "the upper bound; replaces the attribute", SameTypeAs("X"), Optional())
      .Output("Out", "shaped like X; may be X", SameTypeAs("X"), TensorOrRows())
      .RequiredAttr("min", AttrKind::kFloat, "the lower bound")
      .RequiredAttr("max", AttrKind::kFloat, "the upper bound")
      .InferShape(InferClip)
      .Elementwise()
      .Kernel<Cpu, ClipKernel, float, double>()
      .Grad({.reads = {"X", "Min", "Max"}, .yields = {"X"}})
      .GradKernel<Cpu, ClipGradKernel, float, double>();
  ops.Add("clip_by_norm")
      .Doc("Limits the norm of a tensor.", kNormDoc)
      .Input("X", "any shape, or selected rows", Floats(), TensorOrRows())
      .Output("Out", "shaped like X; may be X", SameTypeAs("X"), TensorOrRows())
      .RequiredAttr("max_norm", AttrKind::kFloat, "the largest norm", AtLeast(0))
      .InferShape(SameShape("X", "Out"))
      .Kernel<Cpu, ClipByNormKernel, float, double>()
      .NoGrad();
}

}  // namespace penstock
