#include "framework/ir/prune.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

Op OneToOne(const std::string& type, const std::string& in, const std::string& out) {
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
  main.Append(OneToOne("dropout", "x", "h").Set("is_test", false));
  main.Append(OneToOne("mean", "h", "loss").SetRole(OpRole::kForward | OpRole::kLoss));
  main.Append(OneToOne("relu", "h", "y"));
  main.Append(OneToOne("mean_grad", "loss", "h@GRAD").SetRole(OpRole::kBackward));
  main.Append(OneToOne("sgd", "h@GRAD", "w").SetRole(OpRole::kOptimize));
  return program;
}

std::vector<std::string> TypesLeft(const Program& program) {
  std::vector<std::string> types;
  for (const OpEntry& entry : program.main().ops()) types.push_back(entry.op->type());
  return types;
}

TEST(PruneTest, TestClonesContainNoTrainingOpsOrVariables) {
  const Program training = Training();
  const Program test = CloneForTest(training);
  EXPECT_EQ(TypesLeft(test), (std::vector<std::string>{"dropout", "mean", "relu"}));
  EXPECT_EQ(test.main().FindVar("h@GRAD"), nullptr);
  EXPECT_EQ(test.main().FindVar("w"), nullptr);
  EXPECT_EQ(test.main().ops()[0].op->GetOr<bool>("is_test", false), true);
  EXPECT_EQ(training.main().ops()[0].op->GetOr<bool>("is_test", true), false) << "the original was changed";
}

// A loop in block 1, its gradient in block 2, and a condition in block 3 with another one inside, block 4.
TEST(PruneTest, BlocksNoLongerStartedAreRemoved) {
  Program training;
  const auto runs = [](Op op, int block) { return op.Set("sub_block", BlockRef{block}); };
  training.AddBlock(0);
  training.AddBlock(0).set_forward_block(1);
  training.AddBlock(0);
  training.AddBlock(3);
  training.MutableBlock(1).Append(OneToOne("tanh", "x", "h"));
  training.MutableBlock(2).Append(OneToOne("tanh_grad", "y@GRAD", "h@GRAD"));
  training.MutableBlock(3).Append(runs(OneToOne("conditional_block", "h", "y"), 4));
  training.MutableBlock(4).Append(OneToOne("relu", "h", "y"));
  Block& main = training.MutableBlock(0);
  for (const char* name : {"x", "h", "y", "y@GRAD"}) main.SetVar(TensorVar(name, DType::kFp32, {2}));
  main.Append(runs(OneToOne("while", "x", "h"), 1));
  main.Append(runs(OneToOne("conditional_block", "h", "y"), 3));
  main.Append(runs(OneToOne("while_grad", "h", "x@GRAD"), 2).SetRole(OpRole::kBackward));
  const Result<Program> pruned = PruneTo(training, {"x"}, {"y"});
  ASSERT_TRUE(pruned.ok()) << pruned.status().ToString();
  for (const Program& kept : {CloneForTest(training), *pruned}) {
    ASSERT_EQ(kept.block_count(), 4);
    EXPECT_EQ(kept.block(1).ops()[0].op->type(), "tanh");
    EXPECT_EQ(kept.main().ops()[1].op->Get<BlockRef>("sub_block")->index, 2);
    EXPECT_EQ(kept.block(2).ops()[0].op->Get<BlockRef>("sub_block")->index, 3);
    EXPECT_EQ(kept.block(3).parent(), 2);
    EXPECT_EQ(kept.main().FindVar("y@GRAD"), nullptr);
  }
}

TEST(PruneTest, KeepsOnlyOpsThatTheTargetsNeed) {
  const Result<Program> pruned = PruneTo(Training(), {"x"}, {"y"});
  ASSERT_TRUE(pruned.ok()) << pruned.status().ToString();
  EXPECT_EQ(TypesLeft(*pruned), (std::vector<std::string>{"dropout", "relu"}));
  EXPECT_EQ(pruned->main().FindVar("loss"), nullptr);
}

TEST(PruneTest, WritersOfFedVariablesAreRemoved) {
  const Result<Program> pruned = PruneTo(Training(), {"h"}, {"y"});
  ASSERT_TRUE(pruned.ok()) << pruned.status().ToString();
  EXPECT_EQ(TypesLeft(*pruned), (std::vector<std::string>{"relu"}));
}

// Block 1 is unused; an op that the targets need runs block 2, which runs block 3.
Program WithBlocks() {
  Program program = Training();
  program.AddBlock(0).SetVar(TensorVar("idle", DType::kFp32, {2}));
  program.MutableBlock(1).Append(OneToOne("relu", "w", "idle"));
  program.AddBlock(0).SetVar(TensorVar("inner", DType::kFp32, {2}));
  program.AddBlock(2).Append(OneToOne("relu", "inner", "inner"));
  program.MutableBlock(2).Append(OneToOne("while", "x", "inner").Set("sub_block", BlockRef{3}));
  Op runs = OneToOne("conditional_block", "h", "y");
  program.MutableBlock(0).Append(runs.Set("sub_block", BlockRef{2}));
  return program;
}

TEST(PruneTest, RemovingABlockRenumbersTheOthers) {
  const Result<Program> pruned = PruneTo(WithBlocks(), {"x"}, {"y"});
  ASSERT_TRUE(pruned.ok()) << pruned.status().ToString();
  ASSERT_EQ(pruned->block_count(), 3);
  EXPECT_EQ(pruned->main().FindVar("w"), nullptr) << "only the idle block named it";
  EXPECT_EQ(pruned->main().ops().back().op->Get<BlockRef>("sub_block")->index, 1);
  EXPECT_NE(pruned->block(1).FindVar("inner"), nullptr);
  EXPECT_EQ(pruned->block(1).ops()[0].op->Get<BlockRef>("sub_block")->index, 2);
  EXPECT_EQ(pruned->block(2).parent(), 1);
}

TEST(PruneTest, TestClonesContainNoGradientBlocks) {
  Program program = Training();
  program.AddBlock(0).Append(OneToOne("relu", "x", "h"));
  program.MutableBlock(0).Append(OneToOne("while", "x", "h").Set("sub_block", BlockRef{1}));
  program.AddBlock(0).set_forward_block(1);
  program.MutableBlock(2).Append(OneToOne("relu_grad", "h@GRAD", "w"));
  program.MutableBlock(0).Append(
      OneToOne("while_grad", "h", "h@GRAD").SetRole(OpRole::kBackward).Set("sub_block", BlockRef{2}));
  const Program test = CloneForTest(program);
  EXPECT_EQ(test.block_count(), 2);
  EXPECT_EQ(test.main().FindVar("h@GRAD"), nullptr);
}

TEST(PruneTest, UnknownTargetsAreReported) {
  const Result<Program> pruned = PruneTo(Training(), {"x"}, {"z"});
  ASSERT_FALSE(pruned.ok());
  EXPECT_EQ(pruned.status().id(), "E-prune-target");
}

}  // namespace
}  // namespace penstock
