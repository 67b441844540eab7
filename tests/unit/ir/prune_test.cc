#include "framework/ir/prune.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

Op Make(const std::string& type, const std::string& in, const std::string& out) {
  Op op(type);
  op.AddInput("X", {in}).AddOutput("Out", {out});
  return op;
}

// x -> h -> loss, a gradient and an update, and a branch y of h.
Program Training() {
  Program program;
  Block& main = program.MutableBlock(0);
  for (const char* name : {"x", "h", "loss", "y", "h@GRAD", "w"})
    main.SetVar(TensorVar(name, DType::kFp32, {2}));
  main.Append(Make("dropout", "x", "h").Set("is_test", false));
  main.Append(Make("mean", "h", "loss").SetRole(Role::kForward | Role::kLoss));
  main.Append(Make("relu", "h", "y"));
  main.Append(Make("mean_grad", "loss", "h@GRAD").SetRole(Role::kBackward));
  main.Append(Make("sgd", "h@GRAD", "w").SetRole(Role::kOptimize));
  return program;
}

std::vector<std::string> Types(const Program& program) {
  std::vector<std::string> types;
  for (const OpEntry& entry : program.main().ops()) types.push_back(entry.op->type());
  return types;
}

TEST(PruneTest, ATestCloneHasNoTrainingOpsNorTheirVariablesAndIsInTestMode) {
  const Program training = Training();
  const Program test = CloneForTest(training);
  EXPECT_EQ(Types(test), (std::vector<std::string>{"dropout", "mean", "relu"}));
  EXPECT_EQ(test.main().FindVar("h@GRAD"), nullptr);
  EXPECT_EQ(test.main().FindVar("w"), nullptr);
  EXPECT_EQ(test.main().ops()[0].op->GetOr<bool>("is_test", false), true);
  EXPECT_EQ(training.main().ops()[0].op->GetOr<bool>("is_test", true), false) << "the original was changed";
}

TEST(PruneTest, OnlyWhatTheTargetsNeedStays) {
  const Result<Program> pruned = PruneTo(Training(), {"x"}, {"y"});
  ASSERT_TRUE(pruned.ok()) << pruned.status().ToString();
  EXPECT_EQ(Types(*pruned), (std::vector<std::string>{"dropout", "relu"}));
  EXPECT_EQ(pruned->main().FindVar("loss"), nullptr);
}

TEST(PruneTest, AFedVariableNeedsNobodyToWriteIt) {
  const Result<Program> pruned = PruneTo(Training(), {"h"}, {"y"});
  ASSERT_TRUE(pruned.ok()) << pruned.status().ToString();
  EXPECT_EQ(Types(*pruned), (std::vector<std::string>{"relu"}));
}

TEST(PruneTest, ATargetThatIsNotThereIsNamed) {
  const Result<Program> pruned = PruneTo(Training(), {"x"}, {"z"});
  ASSERT_FALSE(pruned.ok());
  EXPECT_EQ(pruned.status().id(), "E-prune-target");
}

}  // namespace
}  // namespace penstock
