// Adds output layers for many classes to a random network: hsigmoid and nce, mostly with sparse gradients.
#pragma once

#include <array>
#include <string>

#include "tests/support/random_tables.h"

namespace penstock::test {

class ManyClasses {
 public:
  explicit ManyClasses(NetworkBuilder& builder) : b_(builder) {}

  // The cost of each example: [?, 1].
  std::string Cost(const Activation& in) {
    const Dim classes = b_.draw().Of(std::array<Dim, 3>{2, 5, 40});
    const std::string label = b_.Integers("label", {kUnknownDim, 1}, classes);
    const bool sparse = !b_.draw().OneIn(3);
    const std::string cost = b_.Temporary("cost.tmp");
    Op op = b_.draw().OneIn(2) ? Hsigmoid(in, classes, cost) : Nce(in, classes, cost);
    op.AddInput("Label", {label}).Set("is_sparse", sparse).Set("remote_prefetch", sparse);
    Must(b_.main().Append(std::move(op)));
    return cost;
  }

 private:
  Op Hsigmoid(const Activation& in, Dim classes, const std::string& cost) {
    Op op("hierarchical_sigmoid");
    op.AddInput("X", {in.name}).AddInput("W", {b_.TrainedParam({classes - 1, in.width})});
    op.AddInput("Bias", {b_.TrainedParam({classes - 1, 1})});
    op.AddOutput("Out", {cost}).AddOutput("PreOut", {b_.Temporary("pre_out.tmp")});
    return std::move(op.Set("num_classes", static_cast<std::int32_t>(classes)));
  }

  Op Nce(const Activation& in, Dim classes, const std::string& cost) {
    Op op("nce");
    op.AddInput("Input", {in.name}).AddInput("Weight", {b_.TrainedParam({classes, in.width})});
    op.AddInput("Bias", {b_.TrainedParam({classes, 1})}).AddOutput("Cost", {cost});
    op.AddOutput("SampleLogits", {b_.Temporary("logits.tmp")});
    op.AddOutput("SampleLabels", {b_.Temporary("labels.tmp")});
    op.Set("num_total_classes", static_cast<std::int32_t>(classes)).Set("num_neg_samples", 3);
    return std::move(op.Set("seed", b_.draw().Between(1, 99)));
  }

  NetworkBuilder& b_;
};

}  // namespace penstock::test
