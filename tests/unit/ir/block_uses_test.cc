#include "framework/ir/block_uses.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

using Names = std::vector<std::string>;

Op Unary(const char* type, const std::string& x, const std::string& out) {
  return Op(type).AddInput("X", {x}).AddOutput("Out", {out});
}

// Block 1 reads x and runs block 2, which writes y; block 3 is the gradient of block 1.
Program Nested() {
  Program program;
  for (const char* name : {"x", "y"}) program.MutableBlock(0).SetVar(TensorVar(name, DType::kFp32, {1}));
  Block& outer = program.AddBlock(0);
  outer.SetVar(TensorVar("h", DType::kFp32, {1}));
  outer.SetVar(TensorVar("unused", DType::kFp32, {1}));
  outer.Append(Unary("f", "x", "h"));
  outer.Append(Op("run").AddInput("In", {"h", kEmptyVarName}).Set("sub_block", BlockRef{2}));
  Block& inner = program.AddBlock(1);
  inner.SetVar(TensorVar("t", DType::kFp32, {1}));
  inner.Append(Unary("f", "h", "t"));
  inner.Append(Unary("f", "t", "y"));
  Block& grad = program.AddBlock(0);
  grad.set_forward_block(1);
  grad.Append(Unary("f_grad", "h", "x@GRAD"));
  return program;
}

TEST(BlockUses, OuterNamesIncludeThoseOfNestedBlocks) {
  const Program program = Nested();
  EXPECT_EQ(*OuterNames(program, 2), (Names{"h", "y"}));
  EXPECT_EQ(*OuterNames(program, 1), (Names{"x", "y"}));
  EXPECT_EQ(*OuterNamesWritten(program, 1), (Names{"y"}));
}

TEST(BlockUses, AGradientReadsVariablesOfItsForwardBlock) {
  const Program program = Nested();
  EXPECT_EQ(*NamesForGradient(program, 1), (Names{"h"}));
  EXPECT_EQ(*NamesForGradient(program, 2), Names());
  EXPECT_TRUE(HasGradient(program, 1));
  EXPECT_FALSE(HasGradient(program, 2));
}

TEST(BlockUses, DeclaredAttributeNamesAreInputsAndOutputs) {
  const Program program = Nested();
  const Op runner = Op("run").Set("states", Names{"h", "elsewhere"}).Set("word", "unused");
  EXPECT_EQ(HandedNames(runner, program.block(1)), (Names{"h"}));
}

TEST(BlockUses, UnknownOrRecursiveBlocksAreErrors) {
  Program program = Nested();
  program.MutableBlock(2).Append(Op("run").Set("blocks", std::vector<BlockRef>{{1}}));
  EXPECT_EQ(OuterNames(program, 1).status().message(), "block 1 starts itself");
  program = Nested();
  program.MutableBlock(2).Append(Op("run").Set("sub_block", BlockRef{9}));
  EXPECT_EQ(OuterNames(program, 1).status().message(),
            "run: an attribute names block 9; the program has 4 blocks");
}

}  // namespace
}  // namespace penstock
