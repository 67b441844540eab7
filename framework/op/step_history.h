// The steps of a table, as far as a row must know them that missed some.
//
// An optimizer may change rows that a gradient does not list. A row is left as it lies when it misses a step,
// and changed for all missed steps at once when it is next used (RowRule::CatchUp). Each step leaves one
// number, such as its learning rate. Where a missed step moves the row by that number times a power, the
// history keeps the sums of these products, so that a row needs no loop over steps.
//
//   StepHistory history({.kept = 0.9, .growth = 1.001, .sums = 2});
//   history.Add(0.5);
//   history.Add(0.25);
//   history.SumsAfter(0);   // {0.5 * 0.9 + 0.25 * 0.9^2, 0.5 * 0.9 * 0.001 + 0.25 * 0.9^2 * (1.001^2 - 1)}
//
// Sums leave out what is below 1e-12 of a step of the same size. Memory: 8 bytes a step and 8 a sum while the
// numbers change; none for long series of equal ones. A call of Add takes time for the steps that its number
// still reaches, at most a few thousand. Not thread-safe; const calls may run beside each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace penstock {

class StepHistory {
 public:
  // Sum i has for each missed step j, from 1 on: its number * kept^j * (growth^j - 1)^i.
  struct Weights {
    double kept = 0;  // in [0, kKeptMost]
    double growth = 1;
    std::size_t sums = 0;
  };
  static constexpr double kKeptMost = 0.9933;

  explicit StepHistory(const Weights& weights);

  void Add(double number);  // of the next step
  std::uint64_t count() const { return count_; }
  double number(std::uint64_t step) const { return At(step - 1)[0]; }  // steps are 1 to count()
  std::vector<double> numbers() const;                                 // of all steps
  std::size_t bytes() const;                                           // of memory
  // Of the steps that a row missed whose last one was this, or 0; `step` is below count().
  std::span<const double> SumsAfter(std::uint64_t step) const { return {At(step) + 1, stride_ - 1}; }

 private:
  static constexpr std::size_t kBlock = 1024;  // steps that are allocated together

  void ShareBlock();
  const double* At(std::uint64_t index) const {
    return blocks_[index / kBlock].get() + index % kBlock * stride_;
  }

  std::size_t stride_;           // of a step: its number, then the sums of those that follow
  std::vector<double> weights_;  // of the sums, by distance from 1 on
  std::vector<std::shared_ptr<double[]>> blocks_;  // of steps
  std::uint64_t count_ = 0;
};

}  // namespace penstock
