// positive_negative_pair: the number of correctly ranked pairs of results of a query.
#include <cstdint>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/nan.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Considers all pairs of rows with the same QueryID and different labels. A pair is positive if its scores
(column `column` of Score; negative values count from the end) are in the order of its labels, otherwise
negative; if the scores are equal it is also neutral. A pair counts with the mean of the Weight of its rows (1
if absent). The counts are added to AccumulatePositivePair, AccumulateNegativePair and AccumulateNeutralPair,
if all three are given.)";

constexpr const char* kCounts[] = {"Positive", "Negative", "Neutral"};

Status InferPairs(InferContext& c) {
  const Shape& score = c.ShapeOf("Score");
  if (score.rank() != 2) return c.Error("rank of Score (", score.rank(), ", shape ", score, ") must be 2");
  for (const char* slot : {"Label", "QueryID", "Weight"}) {
    if (c.HasInput(slot) && !Compatible(c.ShapeOf(slot).Count(), score[0]))
      return c.Error(slot, " (", c.ShapeOf(slot), ") must hold one element for each row of Score (", score,
                     ")");
  }
  const Dim column = c.Attr<std::int32_t>("column");
  if (score[1] != kUnknownDim && (column >= score[1] || column < -score[1]))
    return c.Error("column (", column, ") must be in [", -score[1], ", ", score[1], ")");
  for (const char* count : kCounts) PENSTOCK_RETURN_IF_ERROR(c.SetShape(StrCat(count, "Pair"), {1}));
  return OkStatus();
}

template <typename Device, typename T>
class PositiveNegativePairKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(score_, label_, query_, weight_);
    column_ = k.Attr<std::int32_t>("column");
    if (column_ < 0) column_ += k[score_].shape[1];
    bool before = true;
    for (const char* count : kCounts) {
      before_.push_back(k.Input(StrCat("Accumulate", count, "Pair")));
      out_.push_back(k.Output(StrCat(count, "Pair")));
      before = before && before_.back();
      PENSTOCK_RETURN_IF_ERROR(RequireOutput(k, StrCat(count, "Pair")));
    }
    if (!before) {
      before_.clear();
      return OkStatus();
    }
    for (const char* count : kCounts)
      PENSTOCK_RETURN_IF_ERROR(RequireCount(k, StrCat("Accumulate", count, "Pair"), 1));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    T counts[3] = {};
    for (std::size_t i = 0; i < before_.size(); ++i) counts[i] = *k[before_[i]].template Data<T>();
    Count(k, counts);
    for (std::size_t i = 0; i < out_.size(); ++i) *k[out_[i]].template Data<T>() = counts[i];
    return OkStatus();
  }

 private:
  void Count(KernelRun& k, T (&counts)[3]) const {
    const std::int64_t* const query = k[query_].template Data<std::int64_t>();
    const T* const score = k[score_].template Data<T>() + column_;
    const T* const label = k[label_].template Data<T>();
    const T* const weight = weight_ ? k[weight_].template Data<T>() : nullptr;
    const Dim rows = k[score_].shape()[0], width = k[score_].shape()[1];
    for (Dim a = 0; a < rows; ++a) {
      for (Dim b = a + 1; b < rows; ++b) {
        if (query[a] != query[b] || label[a] == label[b]) continue;
        const T each = weight == nullptr ? T{1} : (weight[a] + weight[b]) / T{2};
        const T by = score[a * width] - score[b * width];
        const T order = by * (label[a] - label[b]);
        if (IsNan(order)) {
          for (T& count : counts) count += order;
          continue;
        }
        if (by == T{0}) counts[2] += each;
        counts[order > T{0} ? 0 : 1] += each;
      }
    }
  }

  In<"Score"> score_;
  In<"Label"> label_;
  In<"QueryID"> query_;
  In<"Weight"> weight_;
  std::vector<Operand> before_, out_;
  Dim column_ = 0;
};

}  // namespace

void RegisterPositiveNegativePair(OpRegistry& ops) {
  OpDef& def = ops.Add("positive_negative_pair");
  def.Doc("The number of correctly ranked pairs of results.", kDoc)
      .Input("Score", "[rows, columns]", Floats())
      .Input("Label", "one per row", SameTypeAs("Score"))
      .Input("QueryID", "one per row", Only(DType::kInt64));
  for (const char* count : kCounts) {
    def.Input(StrCat("Accumulate", count, "Pair"), "one element: the count so far", SameTypeAs("Score"),
              Optional());
    def.Output(StrCat(count, "Pair"), "one element", SameTypeAs("Score"));
  }
  def.Input("Weight", "one per row", SameTypeAs("Score"), Optional())
      .Attr("column", -1, "the column of Score to use")
      .InferShape(InferPairs)
      .KernelTypeFrom("Score")
      .Kernel<Cpu, PositiveNegativePairKernel, float, double>()
      .NoGrad();
}

}  // namespace penstock
