// Kernels allocate no memory when they run again: kernels of every gradient case and its gradient ops, of ops
// without a gradient, and of ops in programs with blocks. (corpus_test.cc and rows_test.cc check the corpus's
// cases.) Ops that run a block for a gradient are excepted, because each iteration leaves its own scope
// (operators/control_flow/README.md).
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "operators/all_ops.h"
#include "tests/ops/allocations.h"
#include "tests/ops/gradient_case.h"
#include "tests/ops/rows_runner.h"

namespace penstock::test {
namespace {

Tensors RunAgain(const std::string& name, const Op& op, const Tensors& known) {
  std::int64_t allocations = 0;
  const Result<Tensors> made = RunOp(AllOps(), op, known, {}, nullptr, {}, CountInto(allocations));
  EXPECT_TRUE(made.ok()) << name << ": " << made.status().ToString();
  EXPECT_EQ(allocations, 0) << name << ": " << op.type() << " allocates when it runs again";
  return made.ok() ? *made : Tensors();
}

TEST(Allocations, AreCountedBetweenBeginAndEndOnly) {
  const auto before = std::make_unique<int>(1);
  BeginCounting();
  const auto during = std::make_unique<int>(2);
  const std::string text(100, 'x');
  EXPECT_EQ(EndCounting(), 2) << *before << *during << text;
  const auto after = std::make_unique<int>(3);
  BeginCounting();
  EXPECT_EQ(EndCounting(), 0) << *after;
}

TEST(Allocations, NoKernelOfAGradientCaseAllocates) {
  for (const GradientCase& c : AllGradientCases()) {
    Tensors known = c.inputs;
    for (const auto& [name, tensor] : RunAgain(c.name, c.op, c.inputs)) {
      known[name] = tensor;
      if (IsFloat(tensor.dtype())) known[name + kGradSuffix] = tensor.Clone();
    }
    const Result<std::vector<Op>> grads = MakeGradOps(AllOps(), c.op, c.check.wanted);
    ASSERT_TRUE(grads.ok()) << c.name << ": " << grads.status().ToString();
    for (const Op& grad : *grads) {
      for (const auto& [name, tensor] : RunAgain(c.name, grad, known)) known[name] = tensor;
    }
  }
}

TEST(Allocations, NoKernelWithoutAGradientAllocates) {
  for (const PlainCase& c : PlainCases()) RunAgain(c.op.type(), c.op, c.inputs);
}

class StepKernels : public testing::Test {
 protected:
  // Sequences of two, three and no rows; their rank table; their steps.
  void SetUp() override {
    Tensor x = Scattered(DType::kFp32, {5, 2}, -1, 1);
    x.set_lod({{0, 2, 5, 5}});
    Set("x", x);
    Set("mask", TensorOf<bool>({3, 1}, {true, false, true}));
    Set("one", TensorOf<std::int64_t>({1}, {1}));
    Set("which", TensorOf<std::int32_t>({1}, {1}));
    Run(Op("lod_rank_table").AddInput("X", {"x"}).AddOutput("Out", {"table"}).Set("level", 0));
    Run(Ranked("lod_tensor_to_array", "x", "steps"));
  }

  static Op Ranked(const std::string& type, const std::string& x, const std::string& out) {
    return Op(type).AddInput("X", {x}).AddInput("RankTable", {"table"}).AddOutput("Out", {out});
  }
  void Set(const std::string& name, const Tensor& tensor) {
    variables_[name] = std::make_unique<Variable>();
    variables_[name]->As<Tensor>() = tensor;
  }
  void Run(const Op& op) {
    const Status status = RunWithoutAllocating("steps", op, variables_);
    EXPECT_TRUE(status.ok()) << status.ToString();
  }

  Variables variables_;
};

TEST_F(StepKernels, RankTableOpsAllocateNothing) {
  Run(Ranked("array_to_lod_tensor", "steps", "joined"));
  EXPECT_EQ(Near(variables_["joined"]->As<Tensor>(), variables_["x"]->As<Tensor>(), 0, 0).ToString(), "ok");
  Run(Ranked("reorder_lod_tensor_by_rank", "x", "ordered"));
  Run(Ranked("reorder_lod_tensor_by_rank_grad", "ordered", "back"));
  Set("rows", Scattered(DType::kFp32, {3, 2}, -1, 1));
  Run(Ranked("shrink_rnn_memory", "rows", "fewer").AddInput("I", {"one"}));
  Run(Op("shrink_rnn_memory_grad")
          .AddInput("X", {"rows"})
          .AddInput("Out@GRAD", {"fewer"})
          .AddOutput("X@GRAD", {"drows"}));
  Run(Op("max_sequence_len").AddInput("RankTable", {"table"}).AddOutput("Out", {"longest"}));
}

TEST_F(StepKernels, ArrayOpsAllocateNothing) {
  const auto indexed = [](const std::string& type, const std::string& x, const std::string& out) {
    return Op(type).AddInput("X", {x}).AddInput("I", {"one"}).AddOutput("Out", {out});
  };
  Run(indexed("write_to_array", "x", "array"));
  Run(indexed("read_from_array", "array", "read"));
  Run(Op("lod_array_length").AddInput("X", {"array"}).AddOutput("Out", {"length"}));
  for (const bool stack : {false, true}) {
    Set("a", Scattered(DType::kFp32, {2, 2}, -1, 1));
    variables_["alike"] = std::make_unique<Variable>();
    variables_["alike"]->As<TensorArray>().assign(3, variables_["a"]->As<Tensor>());
    Op join("tensor_array_to_tensor");
    join.AddInput("X", {"alike"})
        .AddOutput("Out", {StrCat("joined", stack)})
        .AddOutput("OutIndex", {"index"});
    Run(join.Set("axis", 1).Set("use_stack", stack));
    Op cut("tensor_array_to_tensor_grad");
    cut.AddInput("X", {"alike"})
        .AddInput("Out@GRAD", {StrCat("joined", stack)})
        .AddOutput("X@GRAD", {"grads"});
    Run(cut.Set("axis", 1).Set("use_stack", stack));
  }
}

TEST_F(StepKernels, SplitAndMergeByMaskAllocateNothing) {
  Op split("split_lod_tensor");
  split.AddInput("X", {"x"})
      .AddInput("Mask", {"mask"})
      .AddOutput("OutTrue", {"yes"})
      .AddOutput("OutFalse", {"no"});
  Run(split.Set("level", 0));
  Op merge("merge_lod_tensor");
  merge.AddInput("X", {"x"})
      .AddInput("Mask", {"mask"})
      .AddInput("InTrue", {"yes"})
      .AddInput("InFalse", {"no"});
  Run(merge.AddOutput("Out", {"merged"}).Set("level", 0));
  EXPECT_EQ(Near(variables_["merged"]->As<Tensor>(), variables_["x"]->As<Tensor>(), 0, 0).ToString(), "ok");
  Run(Op("select_input")
          .AddInput("X", {"x", "merged"})
          .AddInput("Mask", {"which"})
          .AddOutput("Out", {"chosen"}));
  Run(Op("select_output").AddInput("X", {"x"}).AddInput("Mask", {"which"}).AddOutput("Out", {"not", "this"}));
  Run(Op("is_empty").AddInput("X", {"x"}).AddOutput("Out", {"empty"}));
  Run(Op("rnn_memory_helper").AddInput("X", {"x"}).AddOutput("Out", {"memory"}));
}

}  // namespace
}  // namespace penstock::test
