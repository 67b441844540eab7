// precision_recall: precision, recall and F1 of classes, for one batch and for all batches so far.
#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/nan.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
For each class, each example is a true or false positive or negative and counts with its weight (1 without
Weights). AccumStatesInfo is StatesInfo plus these counts.

BatchMetrics is (macro precision, macro recall, macro F1, micro precision, micro recall, micro F1) of the
batch's counts; AccumMetrics is the same of all counts. Macro metrics are means over classes; micro metrics
sum the counts of all classes. Precision is TP / (TP + FP) and recall is TP / (TP + FN), both 1 if the
denominator is 0. F1 is 2 * precision * recall / (precision + recall), or 0 if both are 0.)";

constexpr int kTruePositive = 0, kFalsePositive = 1, kTrueNegative = 2, kFalseNegative = 3, kStates = 4;

Status InferPrecisionRecall(InferContext& c) {
  const Dim classes = c.Attr<std::int32_t>("class_number");
  if (classes > 1 << 24) return c.Error("attribute class_number (", classes, ") must be at most ", 1 << 24);
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("Indices", 0));
  for (const char* slot : {"Labels", "Weights"}) {
    if (c.HasInput(slot) && !Compatible(c.ShapeOf(slot).Count(), c.ShapeOf("Indices").Count()))
      return c.Error(slot, " (", c.ShapeOf(slot), ") must have as many elements as Indices (",
                     c.ShapeOf("Indices"), ")");
  }
  if (c.HasInput("StatesInfo") && !Compatible(c.ShapeOf("StatesInfo"), Shape{classes, kStates}))
    return c.Error("shape of StatesInfo (", c.ShapeOf("StatesInfo"), ") must be ", Shape{classes, kStates});
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("BatchMetrics", {6}));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("AccumMetrics", {6}));
  return c.SetShape("AccumStatesInfo", {classes, kStates});
}

double Share(double right, double wrong) {
  if (IsNan(right + wrong)) return right + wrong;
  return right > 0 || wrong > 0 ? right / (right + wrong) : 1.0;
}
double F1(double precision, double recall) {
  if (IsNan(precision + recall)) return precision + recall;
  return precision > 0 || recall > 0 ? 2 * precision * recall / (precision + recall) : 0.0;
}

// Computes the six metrics from the counts, four per class.
std::array<double, 6> MetricsOf(std::span<const double> states) {
  double precision = 0, recall = 0, right = 0, wrong = 0, missed = 0;
  const auto classes = static_cast<double>(states.size() / kStates);
  for (std::size_t s = 0; s < states.size(); s += kStates) {
    const double tp = states[s + kTruePositive], fp = states[s + kFalsePositive],
                 fn = states[s + kFalseNegative];
    precision += Share(tp, fp);
    recall += Share(tp, fn);
    right += tp;
    wrong += fp;
    missed += fn;
  }
  precision /= classes;
  recall /= classes;
  return {precision,
          recall,
          F1(precision, recall),
          Share(right, wrong),
          Share(right, missed),
          F1(Share(right, wrong), Share(right, missed))};
}

template <typename Device, typename T>
class PrecisionRecallKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(indices_, labels_, weights_, before_, batch_, all_, after_);
    classes_ = k.Attr<std::int32_t>("class_number");
    PENSTOCK_RETURN_IF_ERROR(RequireCount(k, "Labels", k[indices_].shape.Count()));
    if (weights_) PENSTOCK_RETURN_IF_ERROR(RequireCount(k, "Weights", k[indices_].shape.Count()));
    if (before_) PENSTOCK_RETURN_IF_ERROR(RequireCount(k, "StatesInfo", classes_ * kStates));
    states_.resize(static_cast<std::size_t>(classes_ * kStates));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(Count(k));
    std::ranges::copy(MetricsOf(states_), k[batch_].template Data<double>());
    T* const after = k[after_].template Data<T>();
    const T* const before = before_ ? std::as_const(k[before_]).template Data<T>() : nullptr;
    for (std::size_t s = 0; s < states_.size(); ++s) {
      if (before != nullptr) states_[s] += static_cast<double>(before[s]);
      after[s] = static_cast<T>(states_[s]);
    }
    std::ranges::copy(MetricsOf(states_), k[all_].template Data<double>());
    return OkStatus();
  }

 private:
  Status Count(KernelRun& k) {
    const std::int32_t* const indices = std::as_const(k[indices_]).template Data<std::int32_t>();
    const std::int32_t* const labels = std::as_const(k[labels_]).template Data<std::int32_t>();
    const T* const weights = weights_ ? std::as_const(k[weights_]).template Data<T>() : nullptr;
    std::ranges::fill(states_, 0.0);
    double total = 0;
    const Dim count = k[indices_].count();
    for (Dim i = 0; i < count; ++i) {
      for (const std::int32_t number : {indices[i], labels[i]}) {
        if (number < 0 || number >= classes_)
          return InvalidArgument("E-op-index", "precision_recall: class ", number, " is not one of ",
                                 classes_);
      }
      const double weight = weights == nullptr ? 1.0 : static_cast<double>(weights[i]);
      total += weight;
      double* const chosen = &states_[static_cast<std::size_t>(indices[i] * kStates)];
      double* const label = &states_[static_cast<std::size_t>(labels[i] * kStates)];
      chosen[kTrueNegative] -= weight;
      chosen[indices[i] == labels[i] ? kTruePositive : kFalsePositive] += weight;
      if (indices[i] == labels[i]) continue;
      label[kTrueNegative] -= weight;
      label[kFalseNegative] += weight;
    }
    for (std::size_t s = kTrueNegative; s < states_.size(); s += kStates) states_[s] += total;
    return OkStatus();
  }

  In<"Indices"> indices_;
  In<"Labels"> labels_;
  In<"Weights"> weights_;
  In<"StatesInfo"> before_;
  Out<"BatchMetrics"> batch_;
  Out<"AccumMetrics"> all_;
  Out<"AccumStatesInfo"> after_;
  Dim classes_ = 0;
  std::vector<double> states_;
};

}  // namespace

void RegisterPrecisionRecall(OpRegistry& ops) {
  ops.Add("precision_recall")
      .Doc("Precision, recall and F1 of classes.", kDoc)
      .Input("MaxProbs", "[N, 1]: probabilities of the predicted classes; not read", Floats())
      .Input("Indices", "[N, 1]: the predicted classes", Only(DType::kInt32))
      .Input("Labels", "[N, 1]: the true classes", Only(DType::kInt32))
      .Input("Weights", "[N, 1]", SameTypeAs("MaxProbs"), Optional())
      .Input("StatesInfo", "[class_number, 4]: the counts of the previous batches", SameTypeAs("MaxProbs"),
             Optional())
      .Output("BatchMetrics", "[6]", Only(DType::kFp64))
      .Output("AccumMetrics", "[6]", Only(DType::kFp64))
      .Output("AccumStatesInfo", "[class_number, 4]: TP, FP, TN, FN of each class", SameTypeAs("MaxProbs"))
      .RequiredAttr("class_number", AttrKind::kInt, "the number of classes", AtLeast(1))
      .InferShape(InferPrecisionRecall)
      .Kernel<Cpu, PrecisionRecallKernel, float, double>()
      .NoGrad();
}

}  // namespace penstock
