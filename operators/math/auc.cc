// auc: the area under the ROC or the precision-recall curve, over all batches so far or over a sliding window
// of them.
#include <algorithm>

#include "framework/op/op_registry.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
The score of a row is the last element of the row of Predict. Scores are counted in num_thresholds + 1
buckets: StatPos counts the positive labels and StatNeg the negative labels of each bucket. AUC is the area
under the curve that the buckets define, or 0 until both kinds of labels were seen. ROC is true positives over
false positives, integrated by trapezoids. PR is precision over recall, integrated by steps, which equals the
mean of the precision at each positive label. With slide_steps 0, the statistics hold the counts of all
batches. Otherwise they hold the counts of each of the last slide_steps batches, then their sum, then, in one
more element, the number of batches so far; AUC is computed from the sum.)";

// The layout of a statistic.
Dim StatisticSize(int thresholds, int steps) {
  const Dim buckets = Dim{thresholds} + 1;
  return steps == 0 ? buckets : (Dim{steps} + 1) * buckets + 1;
}

Status InferAuc(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("Predict", 2));
  const Shape& predict = c.ShapeOf("Predict");
  if (predict[1] == 0) return c.Error("rows of Predict (", predict, ") must have elements");
  if (!Compatible(c.ShapeOf("Label").Count(), predict[0]))
    return c.Error("Label (", c.ShapeOf("Label"), ") must hold one element for each of the ", predict[0],
                   " rows of Predict");
  const Dim size = StatisticSize(c.Attr<int>("num_thresholds"), c.Attr<int>("slide_steps"));
  for (const char* slot : {"StatPos", "StatNeg"}) {
    if (!Compatible(c.ShapeOf(slot).Count(), size))
      return c.Error(slot, " (", c.ShapeOf(slot), ") must hold ", size, " elements");
    PENSTOCK_RETURN_IF_ERROR(c.ShareAll(slot, StrCat(slot, "Out")));
  }
  return c.SetShape("AUC", {1});
}

// One of the two statistics.
class Counts {
 public:
  Counts(std::int64_t* at, Dim buckets, Dim steps) : at_(at), buckets_(buckets), steps_(steps) {}

  // Subtracts the oldest batch from the sum and clears its counts for the new batch.
  void Turn() {
    for (Dim i = 0; i < buckets_; ++i) {
      sum()[i] -= batch()[i];
      batch()[i] = 0;
    }
  }
  void Close() {
    for (Dim i = 0; i < buckets_; ++i) sum()[i] += batch()[i];
    ++batches();
  }
  // Returns where the current batch is counted, and the counts from which AUC is computed.
  std::int64_t* batch() { return at_ + (steps_ == 0 ? 0 : batches() % steps_ * buckets_); }
  std::int64_t* sum() { return at_ + steps_ * buckets_; }
  std::int64_t& batches() { return at_[(steps_ + 1) * buckets_]; }

 private:
  std::int64_t* at_;
  Dim buckets_, steps_;
};

double AreaOf(const std::int64_t* positive, const std::int64_t* negative, Dim buckets, bool of_precision) {
  double roc = 0, precision = 0, positives = 0, negatives = 0;
  for (Dim i = buckets - 1; i >= 0; --i) {           // in descending order of score
    if ((positive[i] | negative[i]) == 0) continue;  // most buckets are empty
    const auto more_positive = static_cast<double>(positive[i]);
    const auto more_negative = static_cast<double>(negative[i]);
    roc += more_negative * (positives + more_positive / 2);
    positives += more_positive;
    negatives += more_negative;
    precision += more_positive * positives / (positives + negatives);
  }
  if (positives == 0 || negatives == 0) return 0;
  return of_precision ? precision / positives : roc / positives / negatives;
}

template <typename Device, typename T>
class AucKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(label_, auc_);
    predict_ = k.Input("Predict");
    in_[0] = k.Input("StatPos");
    in_[1] = k.Input("StatNeg");
    out_[0] = k.Output("StatPosOut");
    out_[1] = k.Output("StatNegOut");
    thresholds_ = k.Attr<int>("num_thresholds");
    steps_ = k.Attr<int>("slide_steps");
    of_precision_ = k.Attr<std::string>("curve") == "PR";
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(CheckScores(k));
    std::int64_t* at[2];
    for (std::size_t i = 0; i < 2; ++i) {
      const auto from = k[in_[i]].template Span<std::int64_t>();
      at[i] = k[out_[i]].template Data<std::int64_t>();
      if (at[i] != from.data()) std::ranges::copy(from, at[i]);
      if (steps_ > 0 && from.back() < 0)
        return InvalidArgument("E-op-auc", "auc: ", in_[i].name, " counts ", from.back(), " batches");
    }
    const Dim buckets = Dim{thresholds_} + 1;
    Counts positive(at[0], buckets, steps_), negative(at[1], buckets, steps_);
    if (steps_ > 0) {
      positive.Turn();
      negative.Turn();
    }
    if (k[label_].dtype() == DType::kInt32) {
      Count<std::int32_t>(k, positive.batch(), negative.batch());
    } else {
      Count<std::int64_t>(k, positive.batch(), negative.batch());
    }
    if (steps_ > 0) {
      positive.Close();
      negative.Close();
    }
    *k[auc_].template Data<double>() = AreaOf(positive.sum(), negative.sum(), buckets, of_precision_);
    return OkStatus();
  }

 private:
  // Checked before anything is counted, so that a bad batch leaves the statistics unchanged.
  Status CheckScores(KernelRun& k) {
    const Dim width = k[predict_].shape()[1];
    const T* const predict = k[predict_].template Data<T>();
    for (Dim row = 0; row < k[predict_].shape()[0]; ++row) {
      const T score = predict[(row + 1) * width - 1];
      if (score >= T{0} && score <= T{1}) continue;
      return InvalidArgument("E-op-auc", "auc: the score of row ", row, " (", score,
                             ") must be in [0, 1]: Predict (", predict_.name, ") holds probabilities");
    }
    return OkStatus();
  }

  // Adds each example to the bucket of its score.
  template <typename Label>
  void Count(KernelRun& k, std::int64_t* positive, std::int64_t* negative) {
    const T* const predict = k[predict_].template Data<T>();
    const auto labels = k[label_].template Span<Label>();
    const Dim width = k[predict_].shape()[1];
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const T score = predict[(static_cast<Dim>(i) + 1) * width - 1];
      const auto bucket = static_cast<Dim>(score * static_cast<T>(thresholds_));
      if (labels[i] > 0) ++positive[bucket];
      if (labels[i] == 0) ++negative[bucket];
    }
  }

  NamedOperand predict_, in_[2];
  In<"Label"> label_;
  Operand out_[2];
  Out<"AUC"> auc_;
  int thresholds_ = 1, steps_ = 0;
  bool of_precision_ = false;  // the precision-recall curve, not the ROC curve
};

}  // namespace

void RegisterAuc(OpRegistry& ops) {
  ops.Add("auc")
      .Doc("The area under the ROC or the precision-recall curve.", kDoc)
      .Input("Predict", "probabilities, one row per example; the last column is that of label 1", Floats())
      .Input("Label", "0 or 1, one per example", Integers())
      .Input("StatPos", "the number of positive labels of each bucket", Only(DType::kInt64))
      .Input("StatNeg", "the number of negative labels of each bucket", Only(DType::kInt64))
      .Output("AUC", "one element", Only(DType::kFp64))
      .Output("StatPosOut", "the updated StatPos; the same variable", Only(DType::kInt64))
      .Output("StatNegOut", "the updated StatNeg; the same variable", Only(DType::kInt64))
      .Attr("curve", "ROC", "the kind of curve", OneOf({"ROC", "PR"}))
      .Attr("num_thresholds", (1 << 13) - 1, "the number of buckets minus 1", AtLeast(1))
      .Attr("slide_steps", 1, "the number of batches in the window; 0: all", AtLeast(0))
      .InferShape(InferAuc)
      .Kernel<Cpu, AucKernel, float, double>()
      .NoGrad();
}

}  // namespace penstock
