#include "framework/op/step_history.h"

#include <algorithm>

namespace penstock {
namespace {

constexpr double kNegligible = 1e-12;

}  // namespace

StepHistory::StepHistory(const Weights& weights) : stride_(weights.sums + 1) {
  if (weights.sums == 0) return;
  double kept = weights.kept, growth = weights.growth;
  for (; kept >= kNegligible; kept *= weights.kept, growth *= weights.growth) {
    double weight = kept;
    for (std::size_t i = 0; i < weights.sums; ++i, weight *= growth - 1) weights_.push_back(weight);
  }
}

void StepHistory::Add(double number) {
  if (count_ % kBlock == 0) blocks_.emplace_back(kBlock * stride_);
  blocks_.back()[count_ % kBlock * stride_] = number;
  ++count_;
  const std::size_t sums = stride_ - 1;
  if (sums == 0) return;
  const std::uint64_t reach = std::min<std::uint64_t>(weights_.size() / sums, count_);
  const double* weight = weights_.data();
  for (std::uint64_t back = 1; back <= reach; ++back, weight += sums) {
    const std::uint64_t index = count_ - back;
    double* const to = blocks_[index / kBlock].data() + index % kBlock * stride_ + 1;
    for (std::size_t i = 0; i < sums; ++i) to[i] += number * weight[i];
  }
}

std::vector<double> StepHistory::numbers() const {
  std::vector<double> numbers(count_);
  for (std::uint64_t i = 0; i < count_; ++i) numbers[i] = At(i)[0];
  return numbers;
}

}  // namespace penstock
