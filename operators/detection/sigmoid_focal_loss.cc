// sigmoid_focal_loss: logistic cross entropies in which easy examples have less weight.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "framework/op/op_registry.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Let p be the logistic function of X[i, c], and n = max(FgNum, 1).

Out[i, c] = -alpha / n * (1 - p)^gamma * log(p)            if Label[i] is c + 1
            0                                              if Label[i] is -1
            -(1 - alpha) / n * p^gamma * log(1 - p)        otherwise

Lin, Goyal, Girshick, He, Dollar: "Focal loss for dense object detection", ICCV 2017.)";

Status InferFocalLoss(InferContext& c) {
  const Shape &x = c.ShapeOf("X"), &label = c.ShapeOf("Label"), &count = c.ShapeOf("FgNum");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("X", 2));
  if (!Compatible(label, Shape{x[0], 1}))
    return c.Error("shape of Label (", label, ") must be [", x[0], ", 1]");
  if (count.rank() != 1 || !Compatible(count[0], 1))
    return c.Error("shape of FgNum (", count, ") must be [1]");
  return c.ShareAll("X", "Out");
}

// The loss of one element and its derivative.
template <typename T>
struct FocalTerm {
  T gamma{}, positive{}, negative{};  // the exponent, and the weights of positive and negative elements

  T Loss(T x, bool is_class) const {
    const T p = 1 / (1 + std::exp(-x));
    if (is_class) return -positive * std::pow(1 - p, gamma) * LogOf(p);
    return -negative * std::pow(p, gamma) * LogOfRest(x);
  }
  T Slope(T x, bool is_class) const {
    const T p = 1 / (1 + std::exp(-x));
    if (is_class) return -positive * std::pow(1 - p, gamma) * (1 - p - p * gamma * LogOf(p));
    return -negative * std::pow(p, gamma) * (LogOfRest(x) * (1 - p) * gamma - p);
  }

 private:
  static T LogOf(T p) { return std::log(p < kLeast ? kLeast : p); }
  // log(1 - logistic(x))
  static T LogOfRest(T x) { return (x >= 0 ? -x : T{0}) - std::log(1 + std::exp(x >= 0 ? -x : x)); }
  static constexpr T kLeast = static_cast<T>(std::numeric_limits<float>::min());
};

// Shared by both kernels. Calls `visit(element, is_positive, term)` for each element that is not ignored;
// `is_positive` says whether the element is that of the label's class.
template <typename T>
class FocalElements {
 public:
  Status Prepare(const KernelSetup& k) {
    k.Bind(label_, count_);
    const Shape& x = k.Input("X").shape;
    if (x.rank() != 2) return k.Error("rank of X (", x.rank(), ", shape ", x, ") must be 2");
    classes_ = x[1];
    PENSTOCK_RETURN_IF_ERROR(RequireCount(k, "Label", x[0]));
    PENSTOCK_RETURN_IF_ERROR(RequireCount(k, "FgNum", 1));
    gamma_ = static_cast<T>(k.Attr<float>("gamma"));
    alpha_ = static_cast<T>(k.Attr<float>("alpha"));
    return OkStatus();
  }
  template <typename Visit>
  void ForEach(KernelRun& k, Visit visit) const {
    const auto labels = std::as_const(k[label_]).template Span<std::int32_t>();
    const T count = static_cast<T>(std::max(std::as_const(k[count_]).template Data<std::int32_t>()[0], 1));
    const FocalTerm<T> term = {gamma_, alpha_ / count, (1 - alpha_) / count};
    Dim at = 0;
    for (const std::int32_t label : labels) {
      for (Dim c = 0; c < classes_; ++c, ++at) {
        if (label != -1) visit(at, c == Dim{label} - 1, term);
      }
    }
  }

 private:
  In<"Label"> label_;
  In<"FgNum"> count_;
  Dim classes_ = 0;
  T gamma_{}, alpha_{};
};

template <typename Device, typename T>
class SigmoidFocalLossKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_);
    return elements_.Prepare(k);
  }
  Status Run(KernelRun& k) override {
    const T* const x = std::as_const(k[x_]).template Data<T>();
    T* const out = k[out_].template Data<T>();
    std::ranges::fill(k[out_].template Span<T>(), T{0});
    elements_.ForEach(
        k, [&](Dim at, bool is_class, const FocalTerm<T>& term) { out[at] = term.Loss(x[at], is_class); });
    return OkStatus();
  }

 private:
  In<"X"> x_;
  Out<"Out"> out_;
  FocalElements<T> elements_;
};

template <typename Device, typename T>
class SigmoidFocalLossGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, dout_, dx_);
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "Out@GRAD", k[x_].shape));
    return elements_.Prepare(k);
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    const T* const x = std::as_const(k[x_]).template Data<T>();
    const T* const dout = std::as_const(k[dout_]).template Data<T>();
    T* const dx = k[dx_].template Data<T>();
    std::ranges::fill(k[dx_].template Span<T>(), T{0});
    elements_.ForEach(k, [&](Dim at, bool is_class, const FocalTerm<T>& term) {
      dx[at] = term.Slope(x[at], is_class) * dout[at];
    });
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  FocalElements<T> elements_;
};

}  // namespace

void RegisterSigmoidFocalLoss(OpRegistry& ops) {
  ops.Add("sigmoid_focal_loss")
      .Doc("Logistic cross entropy in which well-classified examples have less weight.", kDoc)
      .Input("X", "[samples, classes]", Floats())
      .Input("Label", "[samples, 1]: 0 for the background, c + 1 for class c, -1 to ignore the sample",
             Only(DType::kInt32))
      .Input("FgNum", "[1], the number of foreground samples", Only(DType::kInt32))
      .Output("Out", "[samples, classes]", SameTypeAs("X"), Apart())
      .Attr("gamma", 2.0f, "the focusing parameter")
      .Attr("alpha", 0.25f, "the weight of positive elements")
      .InferShape(InferFocalLoss)
      .KernelTypeFrom("X")
      .Kernel<Cpu, SigmoidFocalLossKernel, float, double>()
      .Grad({.reads = {"X", "Label", "FgNum"}, .yields = {"X"}, .apart = {"X"}})
      .GradKernel<Cpu, SigmoidFocalLossGradKernel, float, double>()
      .GradDef()
      .KernelTypeFrom("X");
}

}  // namespace penstock
