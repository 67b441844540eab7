// Mismatched inputs of ops that split tensors into steps and parts, and join them.
#include <gtest/gtest.h>

#include "operators/all_ops.h"
#include "tests/ops/rows_runner.h"

namespace penstock::test {
namespace {

Tensor StepRows(Dim rows, const LoD& lod = {}) {
  Tensor tensor = Ramp(DType::kFp32, {rows, 2}, 1, 1);
  tensor.set_lod(lod);
  return tensor;
}

class StepErrors : public testing::Test {
 protected:
  void Set(const std::string& name, const Tensor& tensor) {
    variables_[name] = std::make_unique<Variable>();
    variables_[name]->As<Tensor>() = tensor;
  }
  std::string ErrorOf(const Op& op) { return RunTwice(op, variables_).message(); }

  static Op Split(int level) {
    Op op("split_lod_tensor");
    op.AddInput("X", {"x"})
        .AddInput("Mask", {"mask"})
        .AddOutput("OutTrue", {"yes"})
        .AddOutput("OutFalse", {"no"});
    return op.Set("level", level);
  }
  static Op Merge(int level) {
    Op op("merge_lod_tensor");
    op.AddInput("X", {"x"})
        .AddInput("Mask", {"mask"})
        .AddInput("InTrue", {"yes"})
        .AddInput("InFalse", {"no"});
    return op.AddOutput("Out", {"merged"}).Set("level", level);
  }

  Variables variables_;
};

TEST_F(StepErrors, SplitRefusesAMissingLodLevel) {
  Set("mask", TensorOf<bool>({2, 1}, {true, false}));
  Set("x", StepRows(5, {{0, 2, 5}}));
  EXPECT_EQ(ErrorOf(Split(1)), "split_lod_tensor: X (x, [5, 2]) has no parts of LoD level 1");
  Set("x", StepRows(5, {{0, 2, 9}}));
  EXPECT_EQ(ErrorOf(Split(0)), "split_lod_tensor: X (x, [5, 2]) has no parts of LoD level 0");
}

TEST_F(StepErrors, MergeRefusesMissingOrDifferentParts) {
  Set("mask", TensorOf<bool>({2, 1}, {true, false}));
  Set("x", StepRows(2));
  Set("yes", StepRows(2));
  Set("no", StepRows(1));
  EXPECT_EQ(ErrorOf(Merge(0)), "merge_lod_tensor: InTrue (yes) has 2 parts; Mask (mask) asks for 1");
  Set("yes", Ramp(DType::kFp32, {1, 3}, 1, 1));
  EXPECT_EQ(ErrorOf(Merge(0)),
            "merge_lod_tensor: InTrue (f32[1, 3]) and InFalse (f32[1, 2]) must agree except in their rows");
}

TEST_F(StepErrors, RefuseSequencesThatDoNotMatchTheRankTable) {
  Set("x", StepRows(5, {{0, 2, 9}}));
  const Op rank = Op("lod_rank_table").AddInput("X", {"x"}).AddOutput("Out", {"table"}).Set("level", 0);
  EXPECT_EQ(ErrorOf(rank), "lod_rank_table: the LoD of X (x) does not match its rows");
  variables_.erase("table");
  Set("x", StepRows(5, {{0, 2, 5}}));
  EXPECT_EQ(ErrorOf(rank), "");
  Set("others", StepRows(3));
  const Op order = Op("reorder_lod_tensor_by_rank")
                       .AddInput("X", {"others"})
                       .AddInput("RankTable", {"table"})
                       .AddOutput("Out", {"ordered"});
  EXPECT_EQ(ErrorOf(order),
            "reorder_lod_tensor_by_rank: X (others) has 3 sequences; the rank table table has 2");
}

TEST_F(StepErrors, ShrinkMemoryGradRefusesTooManyRows) {
  Set("x", StepRows(2));
  Set("dout", StepRows(3));
  const Op op = Op("shrink_rnn_memory_grad")
                    .AddInput("X", {"x"})
                    .AddInput("Out@GRAD", {"dout"})
                    .AddOutput("X@GRAD", {"dx"});
  EXPECT_EQ(ErrorOf(op), "shrink_rnn_memory_grad: Out@GRAD has 3 rows, X 2");
}

}  // namespace
}  // namespace penstock::test
