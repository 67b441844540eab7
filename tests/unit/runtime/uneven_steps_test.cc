#include "framework/runtime/uneven_steps.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace penstock {
namespace {

using Said = std::vector<SaidOfStep>;

// "10" of OnUneven::kJoin: the first rank has a batch, the second none.
Said Say(OnUneven on_uneven, const std::string& has) {
  Said said;
  for (const char each : has) said.push_back({.has_batch = each - '0', .on_uneven = on_uneven});
  return said;
}

TEST(UnevenSteps, ContinueUntilNoRankHasABatch) {
  for (const OnUneven on_uneven : {OnUneven::kJoin, OnUneven::kPad, OnUneven::kError}) {
    EXPECT_EQ(*JudgeStep(Say(on_uneven, "11"), 0, 3), StepOfRank::kOwnBatch);
    EXPECT_EQ(*JudgeStep(Say(on_uneven, "00"), 1, 3), StepOfRank::kEnd);
  }
}

TEST(UnevenSteps, ARankWithoutABatchJoinsOrPads) {
  EXPECT_EQ(*JudgeStep(Say(OnUneven::kJoin, "101"), 1, 0), StepOfRank::kJoins);
  EXPECT_EQ(*JudgeStep(Say(OnUneven::kPad, "101"), 1, 0), StepOfRank::kPads);
  EXPECT_EQ(*JudgeStep(Say(OnUneven::kPad, "101"), 2, 0), StepOfRank::kOwnBatch);
}

TEST(UnevenSteps, NameTheRanksWithoutABatch) {
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(JudgeStep(Say(OnUneven::kError, "101"), rank, 7).status().ToString(),
              "batches: in step 7 trainers 0, 2 have a batch and trainers 1 have none   [E-uneven-data]\n"
              "  note: on_uneven 'join' or 'pad' lets the others go on");
  }
}

TEST(UnevenSteps, AllRanksMustChooseTheSamePolicy) {
  Said said = Say(OnUneven::kJoin, "111");
  said[2].on_uneven = OnUneven::kPad;
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(JudgeStep(said, rank, 0).status().ToString(),
              "batches: on_uneven is \"join\" on trainer 0 and \"pad\" on trainer 2   [E-uneven-choice]");
  }
}

TEST(UnevenSteps, TheShareIsTheFractionOfExamples) {
  EXPECT_EQ(ShareOfExamples(3, 12), 0.25);
  EXPECT_EQ(ShareOfExamples(0, 12), 0.0);
  EXPECT_EQ(ShareOfExamples(0, 0), 0.0);
}

TEST(UnevenSteps, AreChosenByName) {
  for (const OnUneven on_uneven : {OnUneven::kNone, OnUneven::kJoin, OnUneven::kPad, OnUneven::kError})
    EXPECT_EQ(OnUnevenFromName(OnUnevenName(on_uneven)), on_uneven);
  EXPECT_EQ(OnUnevenFromName("wait"), std::nullopt);
}

}  // namespace
}  // namespace penstock
