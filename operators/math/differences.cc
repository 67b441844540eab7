// dist, allclose: compare two tensors.
#include <algorithm>
#include <cmath>
#include <limits>

#include "framework/op/op_registry.h"
#include "operators/common/nan.h"
#include "operators/common/require_shape.h"
#include "operators/math/broadcast.h"

namespace penstock {
namespace {

constexpr char kDistDoc[] = R"(
Out = (sum of |X - Y| ^ p) ^ (1 / p). If p is 0, Out is the number of elements that differ; if p is infinity
or minus infinity, it is the largest or the smallest difference, and the gradient goes to every element that
equals it. The shapes are aligned at their last dimensions, and dimensions of 1 are repeated.)";

constexpr char kCloseDoc[] = R"(
Out is true if |Input - Other| <= atol + rtol * |Other| everywhere. An infinity is close only to itself. NaN
is close to nothing or, with equal_nan, to NaN.)";

Status InferDist(InferContext& c) {
  const Result<AlignedShapes> shapes = AlignShapes(c.ShapeOf("X"), c.ShapeOf("Y"), -1);
  if (!shapes.ok()) return c.Error(shapes.status().message());
  return c.SetShape("Out", {1});
}

// The norm of a sequence of differences, which are not negative.
class Norm {
 public:
  explicit Norm(double p = 2) : p_(p) {}
  bool is_extreme() const { return std::isinf(p_); }
  double Start() const { return p_ < 0 && is_extreme() ? std::numeric_limits<double>::infinity() : 0; }
  double Step(double so_far, double difference) const {
    if (is_extreme()) return p_ > 0 ? MaxOrNan(so_far, difference) : MinOrNan(so_far, difference);
    if (p_ == 0) return so_far + Choose(difference != 0, 1.0, 0.0, difference);
    if (p_ == 1) return so_far + difference;
    return so_far + (p_ == 2 ? difference * difference : std::pow(difference, p_));
  }
  double End(double all) const {
    if (is_extreme() || p_ == 0 || p_ == 1) return all;
    return p_ == 2 ? std::sqrt(all) : std::pow(all, 1 / p_);
  }
  // Returns the contribution of one difference to the norm.
  double Slope(double difference, double norm) const {
    if (is_extreme()) return Choose(difference == norm, 1.0, 0.0, difference, norm);
    if (p_ == 0) return Choose(false, 1.0, 0.0, difference);
    if (p_ == 1) return Choose(true, 1.0, 0.0, difference);
    if (norm == 0) return 0;
    return std::pow(difference / norm, p_ - 1);
  }

 private:
  double p_;
};

template <typename Device, typename T>
class DistKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, y_, out_);
    norm_ = Norm(k.Attr<float>("p"));
    PENSTOCK_ASSIGN_OR_RETURN(loops_, LoopsOver(k, k[x_].shape, k[y_].shape, -1));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const T *const x = k[x_].template Data<T>(), *const y = k[y_].template Data<T>();
    const Dim x_step = loops_.x_moves() ? 1 : 0, y_step = loops_.y_moves() ? 1 : 0;
    double all = norm_.Start();
    loops_.ForEachRow([&](Dim, Dim xo, Dim yo) {
      for (Dim i = 0; i < loops_.inner(); ++i)
        all = norm_.Step(all, std::abs(static_cast<double>(x[xo + i * x_step] - y[yo + i * y_step])));
    });
    *k[out_].template Data<T>() = static_cast<T>(norm_.End(all));
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Y"> y_;
  Out<"Out"> out_;
  Norm norm_;
  BroadcastLoops loops_;
};

template <typename Device, typename T>
class DistGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, y_, out_, dout_, dx_, dy_);
    norm_ = Norm(k.Attr<float>("p"));
    PENSTOCK_ASSIGN_OR_RETURN(loops_, LoopsOver(k, k[x_].shape, k[y_].shape, -1));
    PENSTOCK_RETURN_IF_ERROR(RequireCount(k, "Out", 1));
    return RequireCount(k, "Out@GRAD", 1);
  }
  Status Run(KernelRun& k) override {
    const T *const x = k[x_].template Data<T>(), *const y = k[y_].template Data<T>();
    const T norm = *k[out_].template Data<T>(), dout = *k[dout_].template Data<T>();
    T* const dx = dx_ ? k[dx_].template Data<T>() : nullptr;
    T* const dy = dy_ ? k[dy_].template Data<T>() : nullptr;
    if (dx_) std::ranges::fill(k[dx_].template Span<T>(), T{0});
    if (dy_) std::ranges::fill(k[dy_].template Span<T>(), T{0});
    const Dim x_step = loops_.x_moves() ? 1 : 0, y_step = loops_.y_moves() ? 1 : 0;
    loops_.ForEachRow([&](Dim, Dim xo, Dim yo) {
      for (Dim i = 0; i < loops_.inner(); ++i) {
        const T difference = x[xo + i * x_step] - y[yo + i * y_step];
        const T slope = dout * static_cast<T>(norm_.Slope(std::abs(difference), norm));
        const T signed_slope =
            difference < T{0} ? -slope : Choose(difference > T{0}, slope, T{0}, difference);
        if (dx != nullptr) dx[xo + i * x_step] += signed_slope;
        if (dy != nullptr) dy[yo + i * y_step] -= signed_slope;
      }
    });
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Y"> y_;
  In<"Out"> out_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  Out<"Y@GRAD"> dy_;
  Norm norm_;
  BroadcastLoops loops_;
};

Status InferClose(InferContext& c) {
  const Shape &x = c.ShapeOf("Input"), &y = c.ShapeOf("Other");
  if (!Compatible(x, y)) return c.Error("Other (", y, ") must have the shape of Input (", x, ")");
  return c.SetShape("Out", {1});
}

template <typename Device, typename T>
class CloseKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(input_, other_, out_);
    relative_ = k.Attr<float>("rtol");
    absolute_ = k.Attr<float>("atol");
    equal_nan_ = k.Attr<bool>("equal_nan");
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const T *const x = k[input_].template Data<T>(), *const y = k[other_].template Data<T>();
    const std::int64_t count = k[input_].count();
    bool close = true;
    for (std::int64_t i = 0; i < count && close; ++i) close = AreClose(x[i], y[i]);
    *k[out_].template Data<bool>() = close;
    return OkStatus();
  }

 private:
  bool AreClose(double x, double y) const {
    if (IsNan(x) || IsNan(y)) return equal_nan_ && IsNan(x) && IsNan(y);
    if (std::isinf(x) || std::isinf(y)) return x == y;
    return std::abs(x - y) <= absolute_ + relative_ * std::abs(y);
  }
  In<"Input"> input_;
  In<"Other"> other_;
  Out<"Out"> out_;
  double relative_ = 0, absolute_ = 0;
  bool equal_nan_ = false;
};

}  // namespace

void RegisterDifferences(OpRegistry& ops) {
  ops.Add("dist")
      .Doc("The p-norm of the difference of two tensors.", kDistDoc)
      .Input("X", "any shape", Floats())
      .Input("Y", "any shape that can be broadcast with that of X", SameTypeAs("X"))
      .Output("Out", "[1]", SameTypeAs("X"), Apart())
      .Attr("p", 2.0f, "the order of the norm")
      .InferShape(InferDist)
      .Kernel<Cpu, DistKernel, float, double>()
      .Grad({.reads = {"X", "Y"}, .reads_outputs = {"Out"}, .yields = {"X", "Y"}, .apart = {"X", "Y"}})
      .GradKernel<Cpu, DistGradKernel, float, double>();
  ops.Add("allclose")
      .Doc("Whether all elements of two tensors are close to each other.", kCloseDoc)
      .Input("Input", "any shape", Floats())
      .Input("Other", "shaped like Input", SameTypeAs("Input"))
      .Output("Out", "[1]", Only(DType::kBool))
      .Attr("rtol", 1e-5f, "the tolerance, relative to |Other|")
      .Attr("atol", 1e-8f, "the absolute tolerance")
      .Attr("equal_nan", false, "whether NaN is close to NaN")
      .Nan("NaN is close to nothing or, with equal_nan, only to NaN.")
      .InferShape(InferClose)
      .KernelTypeFrom("Input")
      .Kernel<Cpu, CloseKernel, float, double>()
      .NoGrad();
}

}  // namespace penstock
