#include "framework/op/step_history.h"

#include <gtest/gtest.h>

#include <cmath>

namespace penstock {
namespace {

double RateOf(std::uint64_t step) { return 1 + 0.5 * std::sin(static_cast<double>(step)); }

// As the comment of Weights defines it, over all steps.
double SumOf(const StepHistory& history, const StepHistory::Weights& weights, std::uint64_t done,
             std::size_t i) {
  double sum = 0;
  for (std::uint64_t step = done + 1; step <= history.count(); ++step) {
    const auto j = static_cast<double>(step - done);
    sum += RateOf(step) * std::pow(weights.kept, j) *
           std::pow(std::pow(weights.growth, j) - 1, static_cast<double>(i));
  }
  return sum;
}

TEST(StepHistory, SumsAreThoseOverAllStepsSince) {
  const StepHistory::Weights weights = {.kept = 0.9, .growth = 1.001, .sums = 3};
  StepHistory history(weights);
  for (std::uint64_t step = 1; step <= 2500; ++step) {
    history.Add(RateOf(step));
    if (step != 1 && step != 300 && step != 2500) continue;
    for (const std::uint64_t done : {step - 1, step / 2, std::uint64_t{0}}) {
      for (std::size_t i = 0; i < weights.sums; ++i) {
        const double sum = SumOf(history, weights, done, i);
        EXPECT_NEAR(history.SumsAfter(done)[i], sum, 1e-9 * sum) << step << " " << done << " " << i;
      }
    }
  }
  EXPECT_EQ(history.count(), 2500U);
  EXPECT_EQ(history.number(1), RateOf(1));
  EXPECT_EQ(history.number(2500), RateOf(2500));
  EXPECT_EQ(history.numbers()[1024], RateOf(1025));
}

// A restored history is made of the numbers alone.
TEST(StepHistory, TheSameNumbersGiveTheSameSums) {
  const StepHistory::Weights weights = {.kept = StepHistory::kKeptMost, .growth = 1, .sums = 1};
  StepHistory first(weights), second(weights);
  for (std::uint64_t step = 1; step <= 5000; ++step) first.Add(RateOf(step));
  for (const double number : first.numbers()) second.Add(number);
  for (std::uint64_t done = 0; done < 5000; ++done)
    ASSERT_EQ(first.SumsAfter(done)[0], second.SumsAfter(done)[0]) << done;
}

TEST(StepHistory, EqualStepsTakeNoMemory) {
  const StepHistory::Weights weights = {.kept = 0.99, .growth = 1.001, .sums = 2};
  StepHistory equal(weights), all(weights);
  const auto rate = [](int step) { return step < 100 ? step : 3; };
  for (int step = 0; step < 60'000; ++step) {
    equal.Add(rate(step));
    all.Add(step);
  }
  EXPECT_LT(equal.bytes(), 10'000U * 24);
  EXPECT_GE(all.bytes(), 60'000U * 24);
  StepHistory late(weights);  // steps 40'001 and on alone
  for (int step = 40'000; step < 60'000; ++step) late.Add(rate(step));
  for (const std::uint64_t done : {0, 7, 5000, 19'000, 19'999})
    EXPECT_EQ(equal.SumsAfter(40'000 + done)[1], late.SumsAfter(done)[1]) << done;
  EXPECT_EQ(equal.number(50), 49);
  EXPECT_EQ(equal.number(50'000), 3);
}

TEST(StepHistory, NothingIsKeptOfAGradientWithoutMoment) {
  StepHistory history({.kept = 0, .growth = 1.1, .sums = 2});
  history.Add(3);
  EXPECT_EQ(history.SumsAfter(0)[0], 0);
  StepHistory numbers({});
  numbers.Add(3);
  EXPECT_EQ(numbers.number(1), 3);
  EXPECT_TRUE(numbers.SumsAfter(0).empty());
}

}  // namespace
}  // namespace penstock
