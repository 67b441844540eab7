#include "framework/ir/edit.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

Op Make(const std::string& type, const std::string& in, const std::string& out) {
  Op op(type);
  op.AddInput("X", {in}).AddOutput("Out", {out});
  return op;
}

Program TwoOps() {
  Program program;
  Block& main = program.MutableBlock(0);
  main.SetVar(TensorVar("a", DType::kFp32, {2}));
  main.SetVar(TensorVar("b", DType::kFp32, {2}));
  main.SetVar(TensorVar("c", DType::kFp32, {2}));
  main.Append(Make("first", "a", "b"));
  main.Append(Make("second", "b", "c"));
  return program;
}

std::vector<std::string> Types(const Program& program) {
  std::vector<std::string> types;
  for (const OpEntry& entry : program.main().ops()) types.push_back(entry.op->type());
  return types;
}

TEST(ProgramTest, CopiesAreIndependent) {
  const Program original = TwoOps();
  Program copy = original;
  EXPECT_EQ(copy.content_id(), original.content_id());
  copy.MutableBlock(0).Append(Make("third", "c", "a"));
  EXPECT_EQ(Types(original), (std::vector<std::string>{"first", "second"}));
  EXPECT_EQ(Types(copy), (std::vector<std::string>{"first", "second", "third"}));
  EXPECT_NE(copy.content_id(), original.content_id());
}

TEST(ProgramTest, OpIdsAreStableWhenPositionsChange) {
  Program program = TwoOps();
  Block& main = program.MutableBlock(0);
  const OpId second = main.ops()[1].id;
  main.Insert(0, Make("zeroth", "a", "a"));
  EXPECT_EQ(main.PositionOf(second), 2);
  EXPECT_EQ(main.FindOp(second)->type(), "second");
  main.Remove(second);
  EXPECT_EQ(main.FindOp(second), nullptr);
  EXPECT_EQ(main.PositionOf(second), -1);
}

TEST(ProgramTest, RemovingAVariableKeepsTheOthersInOrder) {
  Program program = TwoOps();
  Block& main = program.MutableBlock(0);
  EXPECT_TRUE(main.RemoveVar("a"));
  EXPECT_FALSE(main.RemoveVar("a"));
  ASSERT_EQ(main.vars().size(), 2u);
  EXPECT_EQ(main.FindVar("c")->name, "c");
  EXPECT_EQ(main.vars()[0]->name, "b");
}

TEST(ProgramEditTest, InsertionsKeepCallOrderAndMayBeChained) {
  const Program in = TwoOps();
  ProgramEdit edit(in);
  const OpId first = in.main().ops()[0].id;
  const OpId split = edit.main().InsertAfter(first, Make("split", "b", "b"));
  edit.main().InsertAfter(split, Make("send", "b", "b"));
  edit.main().InsertAfter(first, Make("later", "b", "b"));
  edit.main().InsertBefore(first, Make("before", "a", "a"));
  edit.main().Append(Make("last", "c", "c"));
  const Result<Program> out = edit.Apply();
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_EQ(Types(*out),
            (std::vector<std::string>{"before", "first", "split", "send", "later", "second", "last"}));
  EXPECT_EQ(Types(in), (std::vector<std::string>{"first", "second"}));
}

TEST(ProgramEditTest, AnEditThatChangesNothingGivesTheSameContent) {
  const Program in = TwoOps();
  ProgramEdit edit(in);
  EXPECT_NE(edit.main().FindVar("a"), nullptr);
  const Result<Program> out = edit.Apply();
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_EQ(out->content_id(), in.content_id());
  EXPECT_EQ(&out->main(), &in.main());
}

TEST(ProgramEditTest, AnEditOfADeclarationAloneIsAChange) {
  const Program in = TwoOps();
  ProgramEdit edit(in);
  edit.main().SetVar(TensorVar("a", DType::kFp32, {3}));
  const Result<Program> out = edit.Apply();
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_EQ(out->main().FindVar("a")->shape(), Shape({3}));
  EXPECT_EQ(in.main().FindVar("a")->shape(), Shape({2}));
}

TEST(ProgramEditTest, InsertionsAfterARemovedOpTakeItsPosition) {
  const Program in = TwoOps();
  ProgramEdit edit(in);
  const OpId first = in.main().ops()[0].id;
  edit.main().Remove(first);
  edit.main().InsertAfter(first, Make("instead", "a", "b"));
  EXPECT_EQ(Types(*edit.Apply()), (std::vector<std::string>{"instead", "second"}));
}

TEST(ProgramEditTest, ARenameReachesInsertedOpsAndRolePairs) {
  Program in = TwoOps();
  Op paired = Make("grad", "c", "b");
  paired.SetRolePair("a", "b");
  in.MutableBlock(0).Append(std::move(paired));
  ProgramEdit edit(in);
  edit.main().RenameVar("b", "b.trainer_1");
  edit.main().Append(Make("send", "b", "c"));
  const Result<Program> out = edit.Apply();
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(out->main().FindVar("b"), nullptr);
  ASSERT_NE(out->main().FindVar("b.trainer_1"), nullptr);
  EXPECT_EQ(out->main().ops()[1].op->InputName("X"), "b.trainer_1");
  EXPECT_EQ(out->main().ops()[2].op->RolePairs()[0].second, "b.trainer_1");
  EXPECT_EQ(out->main().ops()[3].op->InputName("X"), "b.trainer_1");
  EXPECT_NE(in.main().FindVar("b"), nullptr);
}

TEST(ProgramEditTest, EditingAnUnknownOpIsAnError) {
  const Program in = TwoOps();
  ProgramEdit edit(in);
  edit.main().Remove(static_cast<OpId>(12345));
  const Result<Program> out = edit.Apply();
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.status().id(), "E-edit-anchor");
}

// Both are the first op of their block.
TEST(ProgramEditTest, EditingAnOpOfAnotherBlockIsAnError) {
  Program in = TwoOps();
  const OpId own = in.main().ops()[0].id;
  const OpId other = in.AddBlock(0).Append(Op("relu"));
  ProgramEdit edit(in);
  edit.main().InsertAfter(own, Op("scale"));
  edit.main().Remove(other);
  EXPECT_NE(edit.main().FindOp(own), nullptr);
  const Result<Program> out = edit.Apply();
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.status().id(), "E-edit-anchor");
}

TEST(ProgramEditTest, InsertedOpsCanBeEdited) {
  const Program in = TwoOps();
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  const OpId a = main.InsertAfter(in.main().ops()[0].id, Op("a"));
  const OpId z = main.Append(Op("z"));
  const OpId gone = main.InsertBefore(a, Op("gone"));
  main.InsertAfter(z, Op("after_z"));
  main.InsertBefore(gone, Op("before_gone"));
  main.Remove(gone);
  main.Replace(a, Op("b"));
  EXPECT_EQ(Types(*edit.Apply()),
            (std::vector<std::string>{"first", "before_gone", "b", "second", "z", "after_z"}));
}

TEST(DefUseTest, ListsWritersAndReadersInProgramOrder) {
  const Program program = TwoOps();
  const DefUse uses(program.main());
  EXPECT_EQ(uses.Writers("b"), std::vector<OpId>{program.main().ops()[0].id});
  EXPECT_EQ(uses.Readers("b"), std::vector<OpId>{program.main().ops()[1].id});
  EXPECT_TRUE(uses.Writers("a").empty());
}

}  // namespace
}  // namespace penstock
