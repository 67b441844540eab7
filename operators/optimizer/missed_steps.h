// What row rules have in common (framework/op/row_rule.h) for rows that missed steps.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>

#include "framework/op/row_rule.h"

namespace penstock {

// A row that missed no more steps than this takes them one by one, as the kernel does, with its bytes.
inline constexpr std::uint64_t kStepsReplayed = 4;

// base^n, the same on every machine; 0 where it is below 1e-24, so that states do not decay into numbers so
// small that processors compute slowly with them.
class Powers {
 public:
  explicit Powers(double base = 0) {
    double power = 1;
    for (double& low : low_) {
      low = power;
      power *= base;
    }
    base_of_high_ = power;
  }
  double operator()(std::uint64_t n) const {
    double power = low_[n % low_.size()];
    double square = base_of_high_;
    for (std::uint64_t high = n / low_.size(); high > 0 && power >= kLeast; high /= 2, square *= square) {
      if (high % 2 == 1) power *= square;
    }
    return power < kLeast ? 0 : power;
  }

 private:
  static constexpr double kLeast = 1e-24;
  std::array<double, 1024> low_;
  double base_of_high_ = 0;
};

// Calls rule(i, g) for each element of a row; `grad` is null if the row has no gradient.
template <typename T, typename Rule>
void ForRow(const RowStep& step, const T* grad, const Rule& rule) {
  for (Dim i = 0; i < step.width; ++i) rule(i, grad == nullptr ? T{0} : grad[i]);
}

// The steps of rows with a moment and a divisor, which missed step j moves by
//   number_j * beta^j * moment / (divisor_kept^j * a + b)
// where a + b is the divisor, and b is constant. With r = divisor_kept^-j and u = b / (a + b), that is
//   number_j * beta^j * r * moment / (a + b) / (1 + u * (r - 1))
// The sums of the history have the first terms of the last quotient's series in u, and then one more term,
// which is more than what the others leave out. A row for which that is too much takes steps one by one.
class MissedMoments {
 public:
  static constexpr std::size_t kTerms = 4;
  using Sums = std::span<const double, kTerms>;

  // `u_most`: no row has a larger u. False: too many steps matter.
  bool Prepare(double beta, double divisor_kept, double u_most) {
    u_most_ = u_most;
    weights_ = {.kept = beta / divisor_kept, .growth = 1 / divisor_kept, .sums = kTerms + 1};
    if (weights_.kept > StepHistory::kKeptMost) return false;
    // Those that follow add up to less than 1e-7 of the first.
    replayed_most_ = 1;
    for (double left = weights_.kept; left >= 1e-7 * (1 - weights_.kept); left *= weights_.kept)
      ++replayed_most_;
    return true;
  }
  std::unique_ptr<StepHistory> MakeHistory() const { return std::make_unique<StepHistory>(weights_); }

  // Calls skip(steps, sums) if the sums are right to 1e-7 for the largest u of the row. Else calls
  // replay(number) for each step, but skip, with sums of 0, gets those at the end that are negligible.
  template <typename LargestU, typename Replay, typename Skip>
  void CatchUp(const StepHistory& history, std::uint64_t done, const LargestU& largest_u,
               const Replay& replay, const Skip& skip) const {
    const std::uint64_t missed = history.count() - done;
    const std::span<const double> sums = history.SumsAfter(done);
    const double next = std::abs(sums[kTerms]), most = 1e-7 * std::abs(sums[0]);
    const auto holds = [&](double u) { return u * u * (u * u) * next <= most; };
    if (missed > kStepsReplayed && (holds(u_most_) || holds(largest_u())))
      return skip(missed, sums.first<kTerms>());
    const std::uint64_t replayed = std::min(missed, replayed_most_);
    for (std::uint64_t i = 1; i <= replayed; ++i) replay(history.number(done + i));
    constexpr std::array<double, kTerms> kNone = {};
    if (replayed < missed) skip(missed - replayed, kNone);
  }

 private:
  StepHistory::Weights weights_;
  double u_most_ = 0;
  std::uint64_t replayed_most_ = 0;
};

}  // namespace penstock
