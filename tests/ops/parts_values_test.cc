// Values of the ops that take, insert, move and find parts of tensors, and the inputs that they reject at run
// time.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "operators/all_ops.h"
#include "tests/ops/gradient_case.h"
#include "tests/ops/run_one.h"

namespace penstock::test {
namespace {

using Ints = std::vector<std::int32_t>;
using Longs = std::vector<std::int64_t>;

Tensor Counting(const Shape& shape) { return Ramp(DType::kFp32, shape, 1, 1); }

TEST(GatherNd, TakesSlicesByLeadingIndices) {
  const Op op = WithSlots("gather_nd", {"X", "Index"}, {"Out"});
  const auto taken = [&](const Tensor& index) {
    return RunOne(op, {{"X", Counting({2, 3, 2})}, {"Index", index}}, "Out");
  };
  ExpectValues(taken(TensorOf<std::int64_t>({2, 1}, {1, 0})), {7, 8, 9, 10, 11, 12, 1, 2, 3, 4, 5, 6});
  ExpectValues(taken(TensorOf<std::int32_t>({1, 2}, {1, 2})), {11, 12});
  const Tensor single = taken(TensorOf<std::int64_t>({3}, {0, 2, 1}));
  EXPECT_EQ(single.shape(), Shape());
  ExpectValues(single, {6});
  ExpectError(op, {{"X", Counting({2, 3})}, {"Index", TensorOf<std::int64_t>({1, 2}, {1, 3})}},
              "gather_nd: Index names 3 for extent 1 of [2, 3]; it must be in [0, 3)");
  ExpectError(op, {{"X", Counting({2, 3})}, {"Index", TensorOf<std::int64_t>({1, 1}, {-1})}},
              "gather_nd: Index names -1 for extent 0 of [2, 3]; it must be in [0, 2)");
}

TEST(ScatterNdAdd, AddsEachUpdateToTheIndexedSlice) {
  const Op op = WithSlots("scatter_nd_add", {"X", "Index", "Updates"}, {"Out"});
  const Tensor index = TensorOf<std::int64_t>({3, 1}, {1, 0, 1});
  const Tensors inputs = {
      {"X", Counting({2, 2})}, {"Index", index}, {"Updates", Ramp(DType::kFp32, {3, 2}, 10, 10)}};
  ExpectValues(RunOne(op, inputs, "Out"), {1 + 30, 2 + 40, 3 + 10 + 50, 4 + 20 + 60});
}

TEST(Scatter, ReplacesRowsByTheLastUpdateOrBySums) {
  const Op op = WithSlots("scatter", {"X", "Ids", "Updates"}, {"Out"});
  Tensors inputs = {{"X", Counting({3, 2})},
                    {"Ids", TensorOf<std::int64_t>({3}, {2, 0, 2})},
                    {"Updates", Ramp(DType::kFp32, {3, 2}, 10, 10)}};
  ExpectValues(RunOne(op, inputs, "Out"), {30, 40, 3, 4, 50, 60});
  ExpectValues(RunOne(Op(op).Set("overwrite", false), inputs, "Out"), {30, 40, 3, 4, 10 + 50, 20 + 60});
  inputs["Ids"] = TensorOf<std::int64_t>({3}, {2, 0, 3});
  ExpectError(op, inputs, "scatter: row 3 is outside of X, which has 3 rows");
}

TEST(WhereIndex, ListsIndicesOfNonzeroElements) {
  const Op op = WithSlots("where_index", {"Condition"}, {"Out"});
  const Tensor truths = TensorOf<bool>({2, 3}, {false, true, true, false, false, true});
  const Tensor found = RunOne(op, {{"Condition", truths}}, "Out");
  EXPECT_EQ(found.shape(), (Shape{3, 2}));
  ExpectValues(found, {0, 1, 0, 2, 1, 2});
  const Tensor none = RunOne(op, {{"Condition", TensorOf<std::int64_t>({2}, {0, 0})}}, "Out");
  EXPECT_EQ(none.shape(), (Shape{0, 1}));
}

TEST(Where, TakesXWhereTheConditionIsTrue) {
  const Op op = WithSlots("where", {"Condition", "X", "Y"}, {"Out"});
  const Tensors inputs = {{"Condition", TensorOf<bool>({3}, {true, false, true})},
                          {"X", TensorOf<std::int64_t>({3}, {1, 2, 3})},
                          {"Y", TensorOf<std::int64_t>({3}, {7, 8, 9})}};
  ExpectValues(RunOne(op, inputs, "Out"), {1, 8, 3});
}

TEST(Unstack, AndUnbindReturnTheSlices) {
  const Tensors inputs = {{"X", Counting({2, 3})}};
  Op op = Op("unstack").AddInput("X", {"X"}).AddOutput("Y", {"a", "b", "c"}).Set("axis", -1).Set("num", 3);
  ExpectValues(RunOne(op, inputs, "b"), {2, 5});
  op = Op("unbind").AddInput("X", {"X"}).AddOutput("Out", {"a", "b"}).Set("axis", 0);
  ExpectValues(RunOne(op, inputs, "b"), {4, 5, 6});
}

TEST(OneHot, Version2AddsADimension) {
  Op op = WithSlots("one_hot_v2", {"X"}, {"Out"}).Set("depth", 3);
  const Tensors inputs = {{"X", TensorOf<std::int64_t>({2, 1}, {2, 0})}};
  EXPECT_EQ(RunOne(op, inputs, "Out").shape(), (Shape{2, 1, 3}));
  ExpectValues(RunOne(op, inputs, "Out"), {0, 0, 1, 1, 0, 0});
  Tensors given = inputs;
  given["d"] = TensorOf<std::int32_t>({1}, {4});
  ExpectValues(RunOne(Op(op).AddInput("depth_tensor", {"d"}), given, "Out"), {0, 0, 1, 0, 1, 0, 0, 0});
  ExpectError(Op(op).Set("depth", 2), inputs, "one_hot_v2: 2 must be in [0, 2)");
  ExpectValues(RunOne(Op(op).Set("depth", 2).Set("allow_out_of_range", true), inputs, "Out"), {0, 0, 1, 0});
}

TEST(FillAnyLike, HoldsItsValueInItsType) {
  Op op = WithSlots("fill_any_like", {"X"}, {"Out"}).Set("value", 2.5f);
  const Tensors inputs = {{"X", Counting({2})}};
  ExpectValues(RunOne(op, inputs, "Out"), {2.5, 2.5});
  const Tensor whole = RunOne(op.Set("dtype", static_cast<std::int32_t>(DType::kInt64)), inputs, "Out");
  EXPECT_EQ(whole.dtype(), DType::kInt64);
  ExpectValues(whole, {2, 2});
}

TEST(Diagonals, AreShiftedByTheOffset) {
  const auto embed = [](int offset, int dim1, int dim2) {
    const Op op =
        WithSlots("diag_embed", {"Input"}, {"Out"}).Set("offset", offset).Set("dim1", dim1).Set("dim2", dim2);
    return RunOne(op, {{"Input", Counting({2})}}, "Out");
  };
  ExpectValues(embed(0, -2, -1), {1, 0, 0, 2});
  ExpectValues(embed(1, 0, 1), {0, 1, 0, 0, 0, 2, 0, 0, 0});
  ExpectValues(embed(1, 1, 0), {0, 0, 0, 1, 0, 0, 0, 2, 0});
  ExpectValues(embed(-1, 0, 1), {0, 0, 0, 1, 0, 0, 0, 2, 0});
  ExpectValues(RunOne(WithSlots("diag", {"Diagonal"}, {"Out"}), {{"Diagonal", Counting({2})}}, "Out"),
               {1, 0, 0, 2});
  const Op eye = WithSlots("eye", {}, {"Out"}).Set("num_rows", std::int64_t{2});
  ExpectValues(RunOne(eye, {}, "Out"), {1, 0, 0, 1});
  ExpectValues(RunOne(Op(eye).Set("num_columns", std::int64_t{3}).Set("dtype", 3), {}, "Out"),
               {1, 0, 0, 0, 1, 0});
}

TEST(Trace, AddsUpADiagonal) {
  const auto trace = [](int offset) {
    const Op op = WithSlots("trace", {"Input"}, {"Out"}).Set("offset", offset);
    return RunOne(op, {{"Input", Counting({2, 2, 3})}}, "Out");
  };
  ExpectValues(trace(0), {1 + 5, 7 + 11});
  ExpectValues(trace(1), {2 + 6, 8 + 12});
  ExpectValues(trace(-1), {4, 10});
  ExpectValues(trace(5), {0, 0});
}

TEST(TrilTriu, WorksInPlace) {
  const auto keep = [](bool lower, int diagonal) {
    Op op = Op("tril_triu").AddInput("X", {"x"}).AddOutput("Out", {"x"});
    return RunOne(op.Set("lower", lower).Set("diagonal", diagonal), {{"x", Counting({2, 3})}}, "x");
  };
  ExpectValues(keep(true, 0), {1, 0, 0, 4, 5, 0});
  ExpectValues(keep(true, -1), {0, 0, 0, 4, 0, 0});
  ExpectValues(keep(false, 1), {0, 2, 3, 0, 0, 6});
  ExpectValues(keep(false, -9), {1, 2, 3, 4, 5, 6});
  ExpectValues(keep(true, 9), {1, 2, 3, 4, 5, 6});
}

TEST(Roll, WrapsElementsAround) {
  const auto roll = [](const Longs& dims, const Longs& shifts) {
    const Op op = WithSlots("roll", {"X"}, {"Out"}).Set("dims", dims).Set("shifts", shifts);
    return RunOne(op, {{"X", Counting({2, 3})}}, "Out");
  };
  ExpectValues(roll({1}, {1}), {3, 1, 2, 6, 4, 5});
  ExpectValues(roll({0}, {-1}), {4, 5, 6, 1, 2, 3});
  ExpectValues(roll({0, -1}, {3, 4}), {6, 4, 5, 3, 1, 2});
  ExpectValues(roll({1}, {std::numeric_limits<std::int64_t>::min()}), {3, 1, 2, 6, 4, 5});
}

TEST(Crop, ShapeMayComeFromTensors) {
  const Tensors inputs = {{"X", Counting({3, 4})},
                          {"S", TensorOf<std::int32_t>({2}, {2, -1})},
                          {"o", TensorOf<std::int32_t>({1}, {1})},
                          {"p", TensorOf<std::int32_t>({1}, {2})}};
  Op op =
      WithSlots("crop_tensor", {"X"}, {"Out"}).AddInput("Shape", {"S"}).AddInput("OffsetsTensor", {"o", "p"});
  const Tensor box = RunOne(op, inputs, "Out");
  EXPECT_EQ(box.shape(), (Shape{2, 2}));
  ExpectValues(box, {7, 8, 11, 12});
  Tensors other = inputs;
  other["p"] = TensorOf<std::int32_t>({1}, {5});
  ExpectError(op, other, "crop_tensor: the box at 5 of extent -1 must lie in extent 1 of X ([3, 4])");
}

TEST(PadConstantLike, PadsYAtTheEnd) {
  const Op op = WithSlots("pad_constant_like", {"X", "Y"}, {"Out"}).Set("pad_value", 9.0f);
  ExpectValues(RunOne(op, {{"X", Counting({2, 3})}, {"Y", Counting({1, 2})}}, "Out"), {1, 2, 9, 9, 9, 9});
}

TEST(ExpandAs, RepeatsX) {
  const Op op = WithSlots("expand_as", {"X", "target_tensor"}, {"Out"});
  ExpectValues(RunOne(op, {{"X", Counting({1, 2})}, {"target_tensor", Counting({2, 4})}}, "Out"),
               {1, 2, 1, 2, 1, 2, 1, 2});
}

TEST(IndexSelect, AndIndexSampleRefuseIndicesOutOfRange) {
  Op op = WithSlots("index_select", {"X", "Index"}, {"Out"}).Set("dim", 1);
  Tensors inputs = {{"X", Counting({2, 3})}, {"Index", TensorOf<std::int64_t>({2}, {2, 0})}};
  ExpectValues(RunOne(op, inputs, "Out"), {3, 1, 6, 4});
  inputs["Index"] = TensorOf<std::int64_t>({1}, {3});
  ExpectError(op, inputs, "index_select: Index names 3; it must be in [0, 3), the extent of X");
  op = WithSlots("index_sample", {"X", "Index"}, {"Out"});
  inputs["Index"] = TensorOf<std::int64_t>({2, 2}, {2, 2, 0, 1});
  ExpectValues(RunOne(op, inputs, "Out"), {3, 3, 4, 5});
}

TEST(Multiplex, RefusesAnIndexOutOfRange) {
  const Op op = Op("multiplex").AddInput("Ids", {"i"}).AddInput("X", {"a", "b"}).AddOutput("Out", {"Out"});
  Tensors inputs = {{"i", TensorOf<std::int32_t>({2, 1}, {1, 0})},
                    {"a", Counting({2, 2})},
                    {"b", Ramp(DType::kFp32, {2, 2}, 9, 1)}};
  ExpectValues(RunOne(op, inputs, "Out"), {9, 10, 3, 4});
  inputs["i"] = TensorOf<std::int64_t>({2, 1}, {1, 2});
  ExpectError(op, inputs, "multiplex: 2 must be in [0, 2)");
}

TEST(ShardIndex, IsRelativeToTheShard) {
  const Op op =
      WithSlots("shard_index", {"X"}, {"Out"}).Set("index_num", 20).Set("nshards", 3).Set("shard_id", 1);
  const Tensors inputs = {{"X", TensorOf<std::int64_t>({4}, {6, 7, 13, 14})}};
  ExpectValues(RunOne(op, inputs, "Out"), {-1, 0, 6, -1});
  ExpectError(op, {{"X", TensorOf<std::int64_t>({1}, {20})}}, "shard_index: 20 must be in [0, 20)");
}

TEST(Unique, KeepsTheOrderOfFirstOccurrence) {
  const Op op = WithSlots("unique_with_counts", {"X"}, {"Out", "Index", "Count"}).Set("dtype", 2);
  const Tensors inputs = {{"X", TensorOf<std::int64_t>({6}, {7, 3, 7, 9, 3, 7})}};
  ExpectValues(RunOne(op, inputs, "Out"), {7, 3, 9});
  ExpectValues(RunOne(op, inputs, "Index"), {0, 1, 0, 2, 1, 0});
  ExpectValues(RunOne(op, inputs, "Count"), {3, 2, 1});
}

// The numbers are those of XXH64 of the reference implementation, and of Fluid.
TEST(Hash, UsesXxh64) {
  const Op op = WithSlots("hash", {"X"}, {"Out"}).Set("num_hash", 3).Set("mod_by", std::int64_t{1000});
  ExpectValues(RunOne(op, {{"X", TensorOf<std::int32_t>({2, 2}, {1, 2, 5, 1 << 20})}}, "Out"),
               {722, 407, 337, 119, 909, 19});
  ExpectValues(RunOne(op, {{"X", TensorOf<std::int64_t>({2, 2}, {1, 2, 5, 1 << 20})}}, "Out"),
               {524, 896, 680, 454, 472, 165});
  // For rows of more than 32 bytes, including their remainders.
  const Op wide = Op(op).Set("num_hash", 2).Set("mod_by", std::int64_t{1} << 40);
  const Tensor made = RunOne(wide, {{"X", Ramp(DType::kInt64, {2, 13}, 0, 1)}}, "Out");
  const std::vector<std::int64_t> expected = {905077498463, 799953497978, 1003256403689, 48109177185};
  EXPECT_TRUE(std::ranges::equal(made.Span<std::int64_t>(), expected));
  const Tensor narrow = RunOne(wide, {{"X", Ramp(DType::kInt32, {1, 13}, 0, 1)}}, "Out");
  EXPECT_EQ(narrow.shape(), (Shape{1, 2, 1}));
}

TEST(Linspace, IncludesBothEnds) {
  const Op op = WithSlots("linspace", {"Start", "Stop", "Num"}, {"Out"});
  const auto run = [&](std::int32_t num) {
    const auto one = [](double value) { return Ramp(DType::kFp64, {1}, value, 0); };
    return RunOne(op, {{"Start", one(1)}, {"Stop", one(3)}, {"Num", TensorOf<std::int32_t>({1}, {num})}},
                  "Out");
  };
  ExpectValues(run(5), {1, 1.5, 2, 2.5, 3});
  ExpectValues(run(1), {1});
}

TEST(Draws, AreUniformReproducibleAndBounded) {
  const Op op = WithSlots("randint", {}, {"Out"})
                    .Set("shape", Longs{6000})
                    .Set("low", -2)
                    .Set("high", 4)
                    .Set("seed", 5);
  const Tensor drawn = RunOne(op, {}, "Out"), again = RunOne(op, {}, "Out");
  std::vector<int> counts(6);
  for (const std::int64_t value : drawn.Span<std::int64_t>()) {
    ASSERT_TRUE(value >= -2 && value < 4);
    ++counts[static_cast<std::size_t>(value + 2)];
  }
  for (const int count : counts) EXPECT_NEAR(count, 1000, 150);  // five standard deviations
  EXPECT_TRUE(std::ranges::equal(drawn.Span<std::int64_t>(), again.Span<std::int64_t>()));
  const Tensor order = RunOne(WithSlots("randperm", {}, {"Out"}).Set("n", 50).Set("seed", 5), {}, "Out");
  std::vector<std::int64_t> sorted(order.Span<std::int64_t>().begin(), order.Span<std::int64_t>().end());
  EXPECT_FALSE(std::ranges::is_sorted(sorted));
  std::ranges::sort(sorted);
  for (std::size_t i = 0; i < sorted.size(); ++i) EXPECT_EQ(sorted[i], static_cast<std::int64_t>(i));
}

TEST(SamplingId, DrawsColumnsByProbability) {
  Tensor shares(DType::kFp64, {4000, 3});
  for (Dim i = 0; i < 4000; ++i) {
    for (int j = 0; j < 3; ++j) shares.Data<double>()[i * 3 + j] = j == 0 ? 0.5 : j == 1 ? 0.0 : 0.5;
  }
  const Tensor drawn =
      RunOne(WithSlots("sampling_id", {"X"}, {"Out"}).Set("seed", 3), {{"X", shares}}, "Out");
  std::vector<int> counts(3);
  for (const std::int64_t value : drawn.Span<std::int64_t>()) ++counts[static_cast<std::size_t>(value)];
  EXPECT_NEAR(counts[0], 2000, 160);
  EXPECT_EQ(counts[1], 0);
}

TEST(RandomCrop, CutsABoxOfEachInstance) {
  const Op op = WithSlots("random_crop", {"X", "Seed"}, {"Out", "SeedOut"}).Set("shape", Ints{2, 2});
  Tensors inputs = {{"X", Counting({3, 4, 5})}, {"Seed", TensorOf<std::int64_t>({1}, {5})}};
  const Tensor boxes = RunOne(op, inputs, "Out");
  for (Dim i = 0; i < 3; ++i) {
    const float* const box = boxes.Data<float>() + i * 4;
    EXPECT_TRUE(box[0] > static_cast<float>(i) * 20 && box[3] <= static_cast<float>(i + 1) * 20);
    EXPECT_EQ(box[1], box[0] + 1);
    EXPECT_EQ(box[2], box[0] + 5);
    EXPECT_EQ(box[3], box[0] + 6);
  }
  EXPECT_NE(RunOne(op, inputs, "SeedOut").Data<std::int64_t>()[0], 5);
}

}  // namespace
}  // namespace penstock::test
