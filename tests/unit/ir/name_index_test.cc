#include "framework/ir/name_index.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "framework/base/strings.h"
#include "framework/ir/program.h"

namespace penstock {
namespace {

VarRef Named(const std::string& name) { return std::make_shared<const Var>(ControlVar(name)); }

std::vector<VarRef> Many(int count) {
  std::vector<VarRef> vars;
  for (int i = 0; i < count; ++i) vars.push_back(Named(StrCat("fc_", i, ".w")));
  return vars;
}

TEST(NameIndexTest, FindsExactlyTheInsertedNames) {
  const std::vector<VarRef> vars = Many(1000);
  NameIndex index;
  EXPECT_LT(index.Find("fc_0.w", vars), 0);
  index.Assign(vars);
  for (std::size_t i = 0; i < vars.size(); ++i)
    EXPECT_EQ(index.Find(vars[i]->name, vars), static_cast<std::int64_t>(i));
  EXPECT_LT(index.Find("fc_1000.w", vars), 0);
  EXPECT_LT(index.Find("", vars), 0);
}

TEST(NameIndexTest, FindsRemainingNamesAfterRemovals) {
  const std::vector<VarRef> vars = Many(1000);
  NameIndex index;
  index.Assign(vars);
  for (std::size_t i = 0; i < vars.size(); i += 2) index.Remove(vars[i]->name, vars);
  index.Remove("never there", vars);
  for (std::size_t i = 0; i < vars.size(); ++i) {
    EXPECT_EQ(index.Find(vars[i]->name, vars),
              i % 2 == 0 ? FlatIndex::kAbsent : static_cast<std::int64_t>(i));
  }
  for (std::size_t i = 0; i < vars.size(); i += 2) index.Add(vars[i]->name, i);
  for (std::size_t i = 0; i < vars.size(); ++i)
    EXPECT_EQ(index.Find(vars[i]->name, vars), static_cast<std::int64_t>(i));
}

Program WithVars(int count) {
  Program program;
  for (const VarRef& var : Many(count)) program.MutableBlock(0).AddVarRef(var);
  return program;
}

TEST(NameIndexTest, BatchLookupEqualsSingleLookups) {
  const std::vector<VarRef> vars = Many(100);
  NameIndex index;
  std::vector<std::string> names = {"never there"};
  for (int i = 0; i < 200; i += 3) names.push_back(StrCat("fc_", i, ".w"));
  const std::vector<std::string_view> asked(names.begin(), names.end());
  std::vector<std::int64_t> found(asked.size(), 7);
  index.FindAll(asked, vars, found);
  EXPECT_EQ(found, std::vector<std::int64_t>(asked.size(), FlatIndex::kAbsent));  // the index is empty
  index.Assign(vars);
  index.FindAll(asked, vars, found);
  for (std::size_t i = 0; i < asked.size(); ++i) EXPECT_EQ(found[i], index.Find(asked[i], vars)) << asked[i];
}

// Enclosing blocks, a gradient block, and names that no block or several blocks declare.
TEST(ProgramNamesTest, BatchLookupEqualsSingleLookups) {
  Program program;
  for (const int parent : {0, 1, 0, 3}) program.AddBlock(parent);
  program.MutableBlock(4).set_forward_block(2);
  std::vector<std::string> names = {"never there"};
  for (int i = 0; i < 150; ++i) {
    names.push_back(StrCat("v", i));
    for (int block = 0; block < program.block_count(); ++block) {
      if (i % (block + 2) == 0) program.MutableBlock(block).SetVar(ControlVar(names.back()));
    }
  }
  const std::vector<std::string_view> asked(names.begin(), names.end());
  for (int block = 0; block < program.block_count(); ++block) {
    std::vector<const Var*> found(asked.size());
    program.FindVars(block, asked, found);
    for (std::size_t i = 0; i < asked.size(); ++i)
      EXPECT_EQ(found[i], program.FindVar(block, asked[i])) << asked[i] << " from block " << block;
  }
}

TEST(BlockNamesTest, CopiesAreIndependent) {
  Program original = WithVars(100);
  Program copy = original;
  copy.MutableBlock(0).AddVarRef(Named("only in the copy"));
  original.MutableBlock(0).AddVarRef(Named("only in the original"));
  copy.MutableBlock(0).RemoveVar("fc_7.w");
  original.MutableBlock(0).RenameVar("fc_8.w", "eight");
  EXPECT_NE(copy.main().FindVar("only in the copy"), nullptr);
  EXPECT_EQ(copy.main().FindVar("only in the original"), nullptr);
  EXPECT_EQ(original.main().FindVar("only in the copy"), nullptr);
  EXPECT_NE(original.main().FindVar("only in the original"), nullptr);
  EXPECT_EQ(copy.main().FindVar("fc_7.w"), nullptr);
  EXPECT_EQ(original.main().FindVar("fc_7.w")->name, "fc_7.w");
  EXPECT_EQ(copy.main().FindVar("fc_8.w")->name, "fc_8.w");
  EXPECT_EQ(original.main().FindVar("fc_8.w"), nullptr);
  EXPECT_EQ(original.main().FindVar("eight")->name, "eight");
}

TEST(BlockNamesTest, RenameKeepsThePositionAndReplacesTheNamesake) {
  Program program = WithVars(4);
  Block& block = program.MutableBlock(0);
  EXPECT_TRUE(block.RenameDeclaration("fc_2.w", "fc_0.w"));
  EXPECT_FALSE(block.RenameDeclaration("fc_2.w", "again"));
  ASSERT_EQ(block.vars().size(), 3u);
  EXPECT_EQ(block.vars()[1]->name, "fc_0.w");
  EXPECT_EQ(block.FindVarRef("fc_0.w"), block.vars()[1]);
  EXPECT_EQ(block.FindVarRef("fc_3.w"), block.vars()[2]);
}

TEST(BlockNamesTest, FindsVariablesAfterABulkRemoval) {
  Program program = WithVars(100);
  Block& block = program.MutableBlock(0);
  block.RemoveVars({"fc_0.w", "fc_50.w", "fc_99.w", "not there"});
  EXPECT_EQ(block.vars().size(), 97u);
  for (const VarRef& var : block.vars()) EXPECT_EQ(block.FindVar(var->name), var.get());
  EXPECT_EQ(block.FindVar("fc_50.w"), nullptr);
}

TEST(BlockNamesTest, IsSafeForConcurrentReads) {
  Program program = WithVars(200);
  for (int i = 0; i < 200; ++i) program.MutableBlock(0).Append(Op(StrCat("op", i)));
  const Program& shared = program;
  std::vector<int> found(4, 0);
  std::vector<std::thread> readers;
  for (int& count : found) {
    readers.emplace_back([&] {
      for (const VarRef& var : shared.main().vars()) count += shared.main().FindVar(var->name) == var.get();
      for (const OpEntry& entry : shared.main().ops())
        count += shared.main().FindOp(entry.id) == entry.op.get();
    });
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(found, std::vector<int>(4, 400));
}

TEST(BlockIdsTest, AnIdOfAnotherBlockIsNotFound) {
  Program program;
  const OpId first = program.MutableBlock(0).Append(Op("a"));
  const OpId second = program.AddBlock(0).Append(Op("b"));
  EXPECT_EQ(program.block(0).PositionOf(first), 0);
  EXPECT_EQ(program.block(0).PositionOf(second), -1);
  EXPECT_EQ(program.block(1).FindOp(first), nullptr);
  EXPECT_EQ(program.block(0).PositionOf(OpId::kNone), -1);
}

TEST(BlockIdsTest, APositionIsKnownAfterAppendingAndAfterSplicing) {
  Program program;
  Block& block = program.MutableBlock(0);
  const OpId a = block.Append(Op("a"));
  EXPECT_EQ(block.PositionOf(a), 0);  // from here on there is an index
  const OpId b = block.Append(Op("b"));
  EXPECT_EQ(block.PositionOf(b), 1);
  block.SetOps({block.ops()[1], block.ops()[0]});
  EXPECT_EQ(block.PositionOf(a), 1);
  EXPECT_EQ(block.PositionOf(b), 0);
}

}  // namespace
}  // namespace penstock
