// The lookup of nested blocks gives the result of walking up the parents, and takes the same time per block
// for tens of thousands of blocks as for a few; a quadratic walk would exceed the test's time limit.
#include "transpiler/memory/nesting.h"

#include <gtest/gtest.h>

#include <random>

#include "operators/all_ops.h"
#include "transpiler/memory/memory.h"

namespace penstock {
namespace {

// A random program with nested blocks, gradient blocks, and names that several blocks declare.
Program RandomBlocks(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](int end) { return static_cast<int>(random() % static_cast<unsigned>(end)); };
  Program program;
  for (int b = 0; b < 40; ++b) {
    Block& block = b == 0 ? program.MutableBlock(0) : program.AddBlock(below(4) == 0 ? below(b) : b - 1);
    if (b > 1 && seed % 2 == 1 && below(8) == 0) block.set_forward_block(below(b));
    for (int i = below(4); i-- > 0;) block.SetVar(TensorVar(StrCat("v", below(10)), DType::kFp32, {1}));
  }
  return program;
}

TEST(VarFinder, AgreesWithTheProgram) {
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    const Program program = RandomBlocks(seed);
    const memory::VarFinder vars(program);
    for (int b = 0; b < program.block_count(); ++b) {
      for (int v = 0; v < 11; ++v) {
        const std::string name = StrCat("v", v);
        ASSERT_EQ(vars.Find(b, name), program.FindVar(b, name))
            << "seed " << seed << ", " << name << " in " << b;
      }
    }
  }
}

TEST(Nesting, StepsLeadInwards) {
  std::mt19937 random(7);
  std::vector<int> around = {-1};
  for (int b = 1; b < 200; ++b)
    around.push_back(static_cast<int>(random() % static_cast<unsigned>(b + 1)) - 1);
  const memory::Nesting nesting(around);
  for (int inner = 0; inner < 200; ++inner) {
    std::vector<int> out = {inner};  // its enclosing blocks, innermost first
    while (around[static_cast<std::size_t>(out.back())] >= 0)
      out.push_back(around[static_cast<std::size_t>(out.back())]);
    for (int outer = 0; outer < 200; ++outer) {
      const auto at = std::find(out.begin(), out.end(), outer);
      ASSERT_EQ(nesting.IsWithin(inner, outer), at != out.end()) << inner << " in " << outer;
      if (at > out.begin() && at != out.end()) {
        ASSERT_EQ(nesting.StepToward(inner, outer), *std::prev(at)) << inner << " in " << outer;
      }
    }
  }
}

// Each block reads variables of the outermost block and of its enclosing block.
Program Nested(int blocks) {
  Program program;
  const auto relu = [](Block& block, const std::string& from, const std::string& to) {
    block.SetVar(TensorVar(to, DType::kFp32, {kUnknownDim, 4}));
    block.Append(Op("relu").AddInput("X", {from}).AddOutput("Out", {to}));
  };
  for (int b = 0; b < blocks; ++b) {
    Block& block = b == 0 ? program.MutableBlock(0) : program.AddBlock(b - 1);
    if (b == 0) {
      Var x = TensorVar("x", DType::kFp32, {kUnknownDim, 4});
      x.need_check_feed = true;
      block.SetVar(std::move(x));
      block.SetVar(TensorVar("condition", DType::kBool, {1}));
    }
    relu(block, b == 0 ? "x" : "a0", StrCat("a", b));
    relu(block, StrCat("a", std::max(0, b - 1)), StrCat("b", b));
    relu(block, StrCat("b", b), StrCat("c", b));
    relu(block, StrCat("c", b), StrCat("d", b));
    if (b + 1 < blocks) {
      block.Append(Op("conditional_block")
                       .AddInput("Cond", {"condition"})
                       .Set("sub_block", BlockRef{b + 1})
                       .Set("is_scalar_condition", true));
    }
  }
  return program;
}

TEST(NestedBlocks, CostPerBlockIsConstant) {
  constexpr int kFew = 5, kMany = 60000;
  const auto moved = [](int blocks) {
    const Program program = Nested(blocks);
    const Result<memory::MemoryRewrite> less = memory::ReuseBuffers(AllOps(), program, {.keep = {"d0"}});
    EXPECT_TRUE(less.ok()) << less.status().ToString();
    const Result<memory::MemoryRewrite> released = memory::ReleaseBuffers(AllOps(), program, {"d0"});
    EXPECT_TRUE(released.ok()) << released.status().ToString();
    return std::pair(less->lines.size(), released->lines.size());
  };
  const auto few = moved(kFew), one_more = moved(kFew + 1), many = moved(kMany);
  EXPECT_GT(one_more.second, few.second);
  EXPECT_EQ(many.first, few.first + (one_more.first - few.first) * (kMany - kFew));
  EXPECT_EQ(many.second, few.second + (one_more.second - few.second) * (kMany - kFew));
}

}  // namespace
}  // namespace penstock
