#include "framework/op/step_history.h"

#include <algorithm>
#include <cstring>

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
  if (count_ % kBlock == 0) {
    ShareBlock();
    blocks_.push_back(std::make_shared<double[]>(kBlock * stride_));
  }
  blocks_.back()[static_cast<std::ptrdiff_t>(count_ % kBlock * stride_)] = number;
  ++count_;
  const std::size_t sums = stride_ - 1;
  if (sums == 0) return;
  const std::uint64_t reach = std::min<std::uint64_t>(weights_.size() / sums, count_);
  const double* weight = weights_.data();
  for (std::uint64_t back = 1; back <= reach; ++back, weight += sums) {
    const std::uint64_t index = count_ - back;
    double* const to = blocks_[index / kBlock].get() + index % kBlock * stride_ + 1;
    for (std::size_t i = 0; i < sums; ++i) to[i] += number * weight[i];
  }
}

// Replaces the last block that no further number reaches by the one before, if they are equal.
void StepHistory::ShareBlock() {
  const std::size_t reached = stride_ == 1 ? 0 : (weights_.size() / (stride_ - 1) + kBlock - 1) / kBlock;
  if (blocks_.size() < reached + 2) return;
  std::shared_ptr<double[]>& last = blocks_[blocks_.size() - reached - 1];
  const std::shared_ptr<double[]>& before = blocks_[blocks_.size() - reached - 2];
  if (std::memcmp(last.get(), before.get(), kBlock * stride_ * sizeof(double)) == 0) last = before;
}

std::size_t StepHistory::bytes() const {
  std::size_t made = 0;
  for (std::size_t i = 0; i < blocks_.size(); ++i) made += i == 0 || blocks_[i] != blocks_[i - 1] ? 1 : 0;
  return made * kBlock * stride_ * sizeof(double);
}

std::vector<double> StepHistory::numbers() const {
  std::vector<double> numbers(count_);
  for (std::uint64_t i = 0; i < count_; ++i) numbers[i] = At(i)[0];
  return numbers;
}

}  // namespace penstock
