// smooth_l1_loss: squares of small differences and absolute values of large ones, summed for each row.
#include <cmath>
#include <string>

#include "framework/op/op_registry.h"
#include "operators/common/nan.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Diff   = (X - Y) * InsideWeight
Out[i] = sum over row i of OutsideWeight * (sigma^2 Diff^2 / 2    where |Diff| < 1 / sigma^2
                                            |Diff| - 1 / (2 sigma^2)    elsewhere)

An absent weight is 1. Girshick: "Fast R-CNN", ICCV 2015.)";

Status InferSmoothL1(InferContext& c) {
  const Shape& x = c.ShapeOf("X");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("X", 1));
  for (const char* slot : {"Y", "InsideWeight", "OutsideWeight"}) {
    if (c.HasInput(slot) && !Compatible(c.ShapeOf(slot), x))
      return c.Error(slot, " (", c.ShapeOf(slot), ") must have the shape of X (", x, ")");
  }
  if (c.HasInput("InsideWeight") != c.HasInput("OutsideWeight"))
    return c.Error("InsideWeight and OutsideWeight must be given both or neither");
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("X", "Diff"));
  c.ShareLod("X", "Out");
  return c.SetShape("Out", {x[0], 1});
}

Status InferSmoothL1Grad(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("Diff", "X@GRAD"));
  return c.ShareAll("Diff", "Y@GRAD");
}

template <typename T>
const T* Weights(KernelRun& k, const Operand& weight) {
  return weight ? k[weight].template Data<T>() : nullptr;
}

template <typename Device, typename T>
class SmoothL1Kernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, y_, inside_, outside_, diff_, out_);
    sigma2_ = static_cast<T>(k.Attr<float>("sigma")) * static_cast<T>(k.Attr<float>("sigma"));
    return RequireOutput(k, "Diff");
  }
  Status Run(KernelRun& k) override {
    const T* const x = k[x_].template Data<T>();
    const T* const y = k[y_].template Data<T>();
    const T* const inside = Weights<T>(k, inside_);
    const T* const outside = Weights<T>(k, outside_);
    T* const diff = k[diff_].template Data<T>();
    T* const out = k[out_].template Data<T>();
    const Dim width = k[x_].shape().RowWidth();
    for (Dim row = 0, i = 0; row < k[x_].shape()[0]; ++row) {
      T sum = 0;
      for (Dim j = 0; j < width; ++j, ++i) {
        diff[i] = (x[i] - y[i]) * (inside == nullptr ? T{1} : inside[i]);
        const T size = std::abs(diff[i]);
        const T loss = size < T{1} / sigma2_ ? T{0.5} * size * size * sigma2_ : size - T{0.5} / sigma2_;
        sum += loss * (outside == nullptr ? T{1} : outside[i]);
      }
      out[row] = sum;
    }
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Y"> y_;
  In<"InsideWeight"> inside_;
  In<"OutsideWeight"> outside_;
  Out<"Diff"> diff_;
  Out<"Out"> out_;
  T sigma2_ = 1;
};

template <typename Device, typename T>
class SmoothL1GradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(inside_, outside_, diff_, dout_, dx_, dy_);
    sigma2_ = static_cast<T>(k.Attr<float>("sigma")) * static_cast<T>(k.Attr<float>("sigma"));
    if (k[diff_].shape.rank() < 2) return k.Error("rank of Diff (", k[diff_].shape, ") must be at least 2");
    for (const char* slot : {"InsideWeight", "OutsideWeight"}) {
      if (!k.Input(slot)) continue;
      PENSTOCK_RETURN_IF_ERROR(RequireShape(k, slot, k[diff_].shape));
      if (k.Input(slot).dtype != k[diff_].dtype)
        return k.Error("element type of ", slot, " (", DTypeName(k.Input(slot).dtype),
                       ") must be that of Diff");
    }
    return RequireCount(k, "Out@GRAD", k[diff_].shape[0]);
  }
  Status Run(KernelRun& k) override {
    const T* const inside = Weights<T>(k, inside_);
    const T* const outside = Weights<T>(k, outside_);
    const T* const diff = k[diff_].template Data<T>();
    const T* const dout = k[dout_].template Data<T>();
    T* const dx = dx_ ? k[dx_].template Data<T>() : nullptr;
    T* const dy = dy_ ? k[dy_].template Data<T>() : nullptr;
    const Dim width = k[diff_].shape().RowWidth();
    for (Dim row = 0, i = 0; row < k[diff_].shape()[0]; ++row) {
      const T step = dout[row];  // dX may be dOut, if a row has one element
      for (Dim j = 0; j < width; ++j, ++i) {
        const T sign = Choose(diff[i] > T{0}, T{1}, T{-1}, diff[i]);
        T slope = std::abs(diff[i]) < T{1} / sigma2_ ? sigma2_ * diff[i] : sign;
        if (inside != nullptr) slope *= inside[i];
        if (outside != nullptr) slope *= outside[i];
        if (dx != nullptr) dx[i] = slope * step;
        if (dy != nullptr) dy[i] = -slope * step;
      }
    }
    return OkStatus();
  }

 private:
  In<"InsideWeight"> inside_;
  In<"OutsideWeight"> outside_;
  In<"Diff"> diff_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  Out<"Y@GRAD"> dy_;
  T sigma2_ = 1;
};

}  // namespace

void RegisterSmoothL1Loss(OpRegistry& ops) {
  ops.Add("smooth_l1_loss")
      .Doc("The smooth L1 loss: quadratic for small differences, linear for large ones.", kDoc)
      .Input("X", "predictions, of rank 2 or more", Floats())
      .Input("Y", "targets, shaped like X", SameTypeAs("X"))
      .Input("InsideWeight", "the factors of the differences", SameTypeAs("X"), Optional())
      .Input("OutsideWeight", "the factors of the losses", SameTypeAs("X"), Optional())
      .Output("Diff", "the weighted differences", SameTypeAs("X"), Intermediate() | Apart())
      .Output("Out", "one loss per row", SameTypeAs("X"))
      .Attr("sigma", 1.0f, "differences up to 1 / sigma^2 have a quadratic loss", AtLeast(1e-10))
      .InferShape(InferSmoothL1)
      .Kernel<Cpu, SmoothL1Kernel, float, double>()
      .Grad({.reads = {"InsideWeight", "OutsideWeight"}, .reads_outputs = {"Diff"}, .yields = {"X", "Y"}})
      .GradKernel<Cpu, SmoothL1GradKernel, float, double>()
      .GradDef()
      .KernelTypeFrom("Out@GRAD")
      .InferShape(InferSmoothL1Grad);
}

}  // namespace penstock
