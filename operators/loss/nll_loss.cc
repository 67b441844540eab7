// nll_loss: the negative log likelihood of classes, for rows or for the pixels of images.
#include <algorithm>
#include <string>

#include "framework/op/op_registry.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
X holds log probabilities: [rows, classes] with labels [rows], or [images, classes, height, width] with labels
[images, height, width]. With w = Weight[label], or 1 without Weight, the loss of an element is -w times X at
its label, or 0 if its label is ignore_index.

reduction none: Out has the losses, shaped like Label; Total_weight is 0
reduction sum:  Out is their sum, and Total_weight the sum of all w
reduction mean: Out is their sum divided by Total_weight, unless that is 0

The gradient of a mean is 0 if Total_weight is 0. Label and Weight have no gradient.)";

// Context is an InferContext or a KernelSetup.
template <typename Context>
Status CheckLikelihoods(const Context& c, const Shape& x, const Shape& label) {
  if (x.rank() != 2 && x.rank() != 4)
    return c.Error("rank of X (", x.rank(), ", shape ", x, ") must be 2 or 4");
  const Shape expected = Concat(x.First(1), x.From(2));
  if (!Compatible(label, expected)) return c.Error("Label (", label, ") must be ", expected, " for X ", x);
  return OkStatus();
}

Status CheckReduction(const InferContext& c) {
  const std::string reduction = c.Attr<std::string>("reduction");
  if (reduction == "none" || reduction == "sum" || reduction == "mean") return OkStatus();
  return c.Error("reduction is '", reduction, "'; it must be none, sum or mean");
}

Status InferNll(InferContext& c) {
  const Shape& x = c.ShapeOf("X");
  PENSTOCK_RETURN_IF_ERROR(CheckLikelihoods(c, x, c.ShapeOf("Label")));
  PENSTOCK_RETURN_IF_ERROR(CheckReduction(c));
  if (c.HasInput("Weight") && !Compatible(c.ShapeOf("Weight"), Shape{x[1]}))
    return c.Error("Weight (", c.ShapeOf("Weight"), ") must hold one element for each of ", x[1], " classes");
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("Total_weight", {1}));
  return c.SetShape("Out", c.Attr<std::string>("reduction") == "none" ? c.ShapeOf("Label") : Shape{1});
}

// The elements with a label that is not ignored, and their weights.
template <typename T>
class LabelledElements {
 public:
  Status Prepare(const KernelSetup& k) {
    const Shape& x = k.Input("X").shape;
    k.Bind(label_, weight_);
    PENSTOCK_RETURN_IF_ERROR(CheckLikelihoods(k, x, k[label_].shape));
    classes_ = x[1];
    inner_ = x.Product(2, x.rank());
    ignored_ = k.Attr<std::int64_t>("ignore_index");
    return weight_ ? RequireCount(k, "Weight", classes_) : OkStatus();
  }
  // Calls visit(element, its position in X, weight) for each element whose label is not ignored, in order.
  template <typename Visit>
  Status ForEach(KernelRun& k, Visit visit) const {
    const std::int64_t* const labels = k[label_].template Data<std::int64_t>();
    const T* const weights = weight_ ? k[weight_].template Data<T>() : nullptr;
    const Dim count = k[label_].shape().Count();
    for (Dim i = 0; i < count; ++i) {
      const std::int64_t label = labels[i];
      if (label == ignored_) continue;
      if (label < 0 || label >= classes_) {
        return InvalidArgument("E-op-label", "nll_loss: label ", label, " of element ", i, " must be in [0, ",
                               classes_, ") or ", ignored_, ", the ignore_index");
      }
      const Dim at = (i / inner_ * classes_ + label) * inner_ + i % inner_;
      visit(i, at, weights == nullptr ? T{1} : weights[label]);
    }
    return OkStatus();
  }

 private:
  In<"Label"> label_;
  In<"Weight"> weight_;
  Dim classes_ = 0, inner_ = 1;
  std::int64_t ignored_ = 0;
};

template <typename Device, typename T>
class NllLossKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_, total_);
    reduction_ = k.Attr<std::string>("reduction");
    PENSTOCK_RETURN_IF_ERROR(RequireOutput(k, "Total_weight"));
    return elements_.Prepare(k);
  }
  Status Run(KernelRun& k) override {
    const T* const x = k[x_].template Data<T>();
    T* const out = k[out_].template Data<T>();
    const bool each = reduction_ == "none";
    std::ranges::fill(k[out_].template Span<T>(), T{0});
    double sum = 0, total = 0;
    PENSTOCK_RETURN_IF_ERROR(elements_.ForEach(k, [&](Dim i, Dim at, T weight) {
      const T loss = -x[at] * weight;
      if (each) {
        out[i] = loss;
      } else {
        sum += static_cast<double>(loss);
        total += static_cast<double>(weight);
      }
    }));
    *k[total_].template Data<T>() = static_cast<T>(total);
    if (!each) *out = static_cast<T>(reduction_ == "mean" && total != 0 ? sum / total : sum);
    return OkStatus();
  }

 private:
  In<"X"> x_;
  Out<"Out"> out_;
  Out<"Total_weight"> total_;
  std::string reduction_;
  LabelledElements<T> elements_;
};

template <typename Device, typename T>
class NllLossGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(total_, dout_, dx_);
    reduction_ = k.Attr<std::string>("reduction");
    PENSTOCK_RETURN_IF_ERROR(elements_.Prepare(k));
    PENSTOCK_RETURN_IF_ERROR(RequireCount(k, "Total_weight", 1));
    return RequireCount(k, "Out@GRAD", reduction_ == "none" ? k.Input("Label").shape.Count() : 1);
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    const T* const dout = k[dout_].template Data<T>();
    T* const dx = k[dx_].template Data<T>();
    const bool each = reduction_ == "none";
    const T total = *k[total_].template Data<T>();
    const T divisor = reduction_ == "mean" && total != T{0} ? total : T{1};
    std::ranges::fill(k[dx_].template Span<T>(), T{0});
    return elements_.ForEach(
        k, [&](Dim i, Dim at, T weight) { dx[at] = -(each ? dout[i] : *dout) * weight / divisor; });
  }

 private:
  In<"Total_weight"> total_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  std::string reduction_;
  LabelledElements<T> elements_;
};

}  // namespace

void RegisterNllLoss(OpRegistry& ops) {
  ops.Add("nll_loss")
      .Doc("The negative log likelihood of classes.", kDoc)
      .Input("X", "log probabilities, rank 2 or 4", Floats())
      .Input("Label", "classes", Only(DType::kInt64))
      .Input("Weight", "one weight per class", SameTypeAs("X"), Optional())
      .Output("Out", "the losses, or one number", SameTypeAs("X"), Apart())
      .Output("Total_weight", "one element", SameTypeAs("X"))
      .Attr("ignore_index", std::int64_t{-100}, "elements with this label are ignored")
      .Attr("reduction", "mean", "none, sum or mean")
      .InferShape(InferNll)
      .KernelTypeFrom("X")
      .Kernel<Cpu, NllLossKernel, float, double>()
      .Grad({.reads = {"X", "Label", "Weight"},
             .reads_outputs = {"Total_weight"},
             .yields = {"X"},
             .of = {"Out"},
             .apart = {"X"}})
      .GradKernel<Cpu, NllLossGradKernel, float, double>();
}

}  // namespace penstock
