#include "executor/client/step_tracker.h"

#include <gtest/gtest.h>

namespace penstock::client {
namespace {

TEST(StepTracker, CountsWorkOfEachKind) {
  StepTracker steps;
  EXPECT_TRUE(steps.Done(Work::kPulls));
  steps.Begin(Work::kPulls);
  steps.Begin(Work::kPulls);
  EXPECT_FALSE(steps.Done(Work::kPulls));
  EXPECT_TRUE(steps.Done(Work::kRows));
  EXPECT_FALSE(steps.End(Work::kPulls));
  EXPECT_TRUE(steps.End(Work::kPulls));
  EXPECT_TRUE(steps.Done(Work::kPulls));
}

TEST(StepTracker, PushesOfTheOpenStepAreNotCountedAsEarlier) {
  StepTracker steps;
  steps.BeginPush(0);
  EXPECT_TRUE(steps.EarlierPushesDone(0));
  EXPECT_FALSE(steps.EarlierPushesDone(1));
  EXPECT_FALSE(steps.EndPush(0));  // nothing waits for a step that is still open
  EXPECT_TRUE(steps.EarlierPushesDone(1));
  steps.BeginPush(0);
  steps.EndStep();
  EXPECT_EQ(steps.step(), 1u);
  EXPECT_FALSE(steps.EarlierPushesDone(1));
  EXPECT_TRUE(steps.EndPush(0));
  EXPECT_TRUE(steps.EarlierPushesDone(1));
}

TEST(StepTracker, StepsCompleteInOrder) {
  StepTracker steps;
  for (std::uint64_t step = 0; step < 3; ++step) {
    if (step != 1) steps.BeginPush(step);
    steps.EndStep();
  }
  EXPECT_FALSE(steps.EndPush(2));
  EXPECT_FALSE(steps.EarlierPushesDone(1));
  EXPECT_TRUE(steps.EndPush(0));
  EXPECT_TRUE(steps.EarlierPushesDone(3));
}

TEST(StepTracker, AllServersNameTheSameFirstStep) {
  StepTracker steps;
  EXPECT_EQ(steps.first_step(), std::nullopt);
  EXPECT_TRUE(steps.first_step_awaited());
  EXPECT_TRUE(steps.TakeFirstStep(5));
  EXPECT_TRUE(steps.TakeFirstStep(5));
  EXPECT_FALSE(steps.TakeFirstStep(0));
  EXPECT_EQ(steps.first_step(), 5U);
  EXPECT_FALSE(steps.first_step_awaited());
}

TEST(StepTracker, AProcessBeginsWithTheStepThatItJoins) {
  StepTracker steps;
  EXPECT_TRUE(steps.joined());
  steps.AwaitJoin();
  EXPECT_TRUE(steps.TakeFirstStep(5));
  EXPECT_EQ(steps.first_step(), std::nullopt);
  EXPECT_TRUE(steps.first_step_awaited());
  steps.Join(3);
  EXPECT_TRUE(steps.joined());
  EXPECT_EQ(steps.step(), 3U);
  EXPECT_EQ(steps.joined_at(), 3U);
  EXPECT_EQ(steps.first_step(), 8U);
}

TEST(StepTracker, InitialValuesPrecedeAnyStep) {
  StepTracker steps;
  steps.Begin(Work::kFirstValues);
  EXPECT_FALSE(steps.EarlierPushesDone(0));
  EXPECT_TRUE(steps.End(Work::kFirstValues));
  EXPECT_TRUE(steps.EarlierPushesDone(0));
}

}  // namespace
}  // namespace penstock::client
