#include "executor/pserver/memory/merge_plan.h"

#include <gtest/gtest.h>

#include "framework/text/parser.h"

namespace penstock::pserver {
namespace {

// The plan as text: "OUTPUT * FACTOR, without N ops".
std::string PlanOf(const std::string& ops, const std::vector<std::string>& grads = {"g.0", "g.1"}) {
  const Program program = ParseText(R"(program
block 0 {
  persist lr : f32[1]
  persist s : f32[1]
  param w : f32[4]
  var g.0 : f32[4]
  var g.1 : f32[4]
  var g : f32[4]
  var h : f32[4]
}
block 1 in 0 {
)" + ops + "\n}\n",
                                    "server")
                              .value();
  const std::optional<MergePlan> plan = FindMerge(program, 1, grads);
  if (!plan) return "none";
  return plan->output + (plan->factor ? " * " + std::to_string(*plan->factor) : "") + ", without " +
         std::to_string(plan->replaces.size());
}

constexpr char kUpdate[] = "(ParamOut=w) = sgd(Param=w, Grad=g, LearningRate=lr)";

TEST(MergePlan, RecognizesASumAndAnInPlaceScale) {
  EXPECT_EQ(PlanOf(std::string("g = sum(X=[g.0, g.1])\ng = scale(X=g) {scale=0.5}\n") + kUpdate),
            "g * 0.500000, without 2");
  EXPECT_EQ(PlanOf(std::string("g = sum(X=[g.0, g.1])\n") + kUpdate), "g, without 1");
}

TEST(MergePlan, AcceptsASeparateScaleOutput) {
  EXPECT_EQ(PlanOf(std::string("h = sum(X=[g.0, g.1])\ng = scale(X=h) {scale=0.5}\n") + kUpdate),
            "g * 0.500000, without 2");
  EXPECT_EQ(
      PlanOf(std::string("h = sum(X=[g.0, g.1])\ng = scale(X=h) {scale=0.5}\ng = sum(X=[g, h])\n") + kUpdate),
      "h, without 1");
}

TEST(MergePlan, KeepsOpsAfterTheMerge) {
  EXPECT_EQ(
      PlanOf(std::string("g = sum(X=[g.0, g.1])\ng = scale(X=g) {scale=0.5}\nh = scale(X=w) {scale=0.01}\n"
                         "g = sum(X=[g, h])\n") +
             kUpdate),
      "g * 0.500000, without 2");
}

TEST(MergePlan, LeavesOtherSumsToTheBlock) {
  const std::string update = kUpdate;
  EXPECT_EQ(PlanOf("g = sum(X=[g.1, g.0])\n" + update), "none") << "another order";
  EXPECT_EQ(PlanOf("g = sum(X=[g.0, g.1, g.0])\n" + update), "none");
  EXPECT_EQ(PlanOf("g = sum(X=[g.0, g.1])\ng = sum(X=[g, g.1])\n" + update), "none") << "one is read again";
  EXPECT_EQ(PlanOf("h = scale(X=g.0) {scale=2.0}\ng = sum(X=[h, g.1])\n" + update), "none");
  EXPECT_EQ(PlanOf("g.0 = sum(X=[g.0, g.1])\n" + update), "none") << "into one of them";
  EXPECT_EQ(PlanOf("g = scale(X=w) {scale=2.0}\ng = sum(X=[g.0, g.1])\n" + update), "none") << "used before";
  EXPECT_EQ(PlanOf("g = sum(X=[g.0, g.1])\ng = scale(X=g) {scale=0.5, bias=1.0}\n" + update), "g, without 1");
  EXPECT_EQ(PlanOf("g = sum(X=[g.0, g.1])\ng = scale(X=g, ScaleTensor=s) {scale=0.5}\n" + update),
            "g, without 1");
  EXPECT_EQ(
      PlanOf("own : f32[4] = sum(X=[g.0, g.1])\n(ParamOut=w) = sgd(Param=w, Grad=own, LearningRate=lr)"),
      "none")
      << "a variable of the block itself";
}

TEST(MergePlan, OneTrainerNeedsNoMerge) {
  EXPECT_EQ(PlanOf(kUpdate, {"g"}), "g, without 0");
  EXPECT_EQ(PlanOf(std::string("g = sum(X=[g.0])\ng = scale(X=g) {scale=1.0}\n") + kUpdate, {"g.0"}),
            "g * 1.000000, without 2");
}

}  // namespace
}  // namespace penstock::pserver
