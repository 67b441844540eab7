// Values of ops that join, frame and fill tensors, for which the corpus has no case.
#include <gtest/gtest.h>

#include "operators/all_ops.h"
#include "tests/ops/allocations.h"
#include "tests/ops/gradient_case.h"
#include "tests/ops/run_one.h"

namespace penstock::test {
namespace {

Tensor Sequences(const Shape& shape, const LoD& lod) {
  Tensor tensor = Ramp(DType::kFp32, shape, 0, 1);
  tensor.set_lod(lod);
  return tensor;
}

Op ConcatOf(std::int32_t axis) {
  return Op("concat").AddInput("X", {"a", "b"}).AddOutput("Out", {"Out"}).Set("axis", axis);
}

TEST(Concat, AlongRowsJoinsTheLoDs) {
  const auto joined = [](const LoD& a, const LoD& b) {
    std::int64_t allocations = 0;
    const Tensors inputs = {{"a", Sequences({5, 2}, a)}, {"b", Sequences({4, 2}, b)}};
    const Result<Tensors> made =
        RunOp(AllOps(), ConcatOf(0), inputs, {}, nullptr, {}, CountInto(allocations));
    PENSTOCK_CHECK(made.ok(), made.status().ToString());
    EXPECT_TRUE(allocations == 0 || made->at("Out").lod().empty()) << "it allocates when it runs again";
    return made->at("Out").lod();
  };
  EXPECT_EQ(joined({{0, 2, 5}}, {{0, 1, 4}}), (LoD{{0, 2, 5, 6, 9}}));
  EXPECT_EQ(joined({{0, 1, 2}, {0, 2, 5}}, {{0, 1}, {0, 4}}), (LoD{{0, 1, 2, 3}, {0, 2, 5, 9}}));
  EXPECT_EQ(joined({{0, 2, 5}}, {}), LoD());
  EXPECT_EQ(joined({}, {{0, 1, 4}}), LoD());
  EXPECT_EQ(joined({{0, 2, 5}}, {{0, 1, 3}}), LoD()) << "b's are not those of its rows";
  ExpectError(ConcatOf(0),
              {{"a", Sequences({5, 2}, {{0, 2, 5}})}, {"b", Sequences({4, 2}, {{0, 1}, {0, 4}})}},
              "concat: b has 2 levels of sequences, a has 1");
}

TEST(Concat, AlongColumnsKeepsTheFirstLoD) {
  Tensors inputs = {{"a", Sequences({5, 2}, {{0, 2, 5}})}, {"b", Sequences({5, 1}, {})}};
  EXPECT_EQ(RunOne(ConcatOf(1), inputs, "Out").lod(), (LoD{{0, 2, 5}}));
  inputs["axis"] = TensorOf<std::int32_t>({1}, {-1});
  EXPECT_EQ(RunOne(ConcatOf(0).AddInput("AxisTensor", {"axis"}), inputs, "Out").lod(), (LoD{{0, 2, 5}}));
}

TEST(Stack, KeepsTheFirstLoDUnlessStackedAlongRows) {
  Op op = Op("stack").AddInput("X", {"a", "b"}).AddOutput("Y", {"Y"});
  const Tensors inputs = {{"a", Sequences({5, 2}, {{0, 2, 5}})}, {"b", Sequences({5, 2}, {})}};
  EXPECT_EQ(RunOne(op.Set("axis", 1), inputs, "Y").lod(), (LoD{{0, 2, 5}}));
  EXPECT_EQ(RunOne(op.Set("axis", 0), inputs, "Y").lod(), LoD());
}

TEST(Range, ComputesInItsElementType) {
  const Op op = WithSlots("range", {"Start", "End", "Step"}, {"Out"});
  const auto run = [&]<typename T>(T start, T end, T step) {
    const auto one = [](T value) { return TensorOf<T>({1}, {value}); };
    return RunOne(op, {{"Start", one(start)}, {"End", one(end)}, {"Step", one(step)}}, "Out").count();
  };
  EXPECT_EQ(run(0.0f, 0.3f, 0.1f), 3);  // 0.3 / 0.1 is 3 in f32, and above it in f64 for these f32
  EXPECT_EQ(run(0.0, 1.0, 0.1), 10);
  EXPECT_EQ(run(2, 2, 1), 0);
}

TEST(Pad, PadsIntegers) {
  Op op = WithSlots("pad", {"X"}, {"Out"}).Set("paddings", std::vector<std::int32_t>{1, 0});
  const Tensors inputs = {{"X", TensorOf<std::int64_t>({2}, {3, 4})}};
  ExpectValues(RunOne(op.Set("pad_value", 2.0f), inputs, "Out"), {2, 3, 4});
}

TEST(FillConstantBatchSizeLike, ReadsItsValueFromStrValue) {
  Op op = WithSlots("fill_constant_batch_size_like", {"Input"}, {"Out"});
  op.Set("shape", std::vector<std::int32_t>{-1}).Set("value", 1.0f);
  const Tensors inputs = {{"Input", Ramp(DType::kFp32, {2, 3}, 0, 1)}};
  ExpectValues(RunOne(op, inputs, "Out"), {1, 1});
  ExpectValues(RunOne(op.Set("str_value", "2.5"), inputs, "Out"), {2.5, 2.5});
}

TEST(StridedSlice, RunsForwardsAndBackwardsAsInNumPy) {
  const Tensors inputs = {{"Input", Ramp(DType::kInt32, {7}, 0, 1)}};
  const auto taken = [&](std::int32_t start, std::int32_t end, std::int32_t stride) {
    Op op = WithSlots("strided_slice", {"Input"}, {"Out"}).Set("axes", std::vector<std::int32_t>{0});
    op.Set("starts", std::vector<std::int32_t>{start}).Set("ends", std::vector<std::int32_t>{end});
    return RunOne(op.Set("strides", std::vector<std::int32_t>{stride}), inputs, "Out");
  };
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  ExpectValues(taken(1, 100, 2), {1, 3, 5});
  ExpectValues(taken(-6, -1, 2), {1, 3, 5});
  ExpectValues(taken(5, 1, -2), {5, 3});
  ExpectValues(taken(-1, -100, -3), {6, 3, 0});
  ExpectValues(taken(100, 0, -3), {6, 3});
  ExpectValues(taken(2, kMost, kMost), {2});
  ExpectValues(taken(2, -kMost, -kMost), {2});
}

TEST(StridedSlice, TakesItsStridesFromTensors) {
  const Op op = WithSlots("strided_slice", {"Input"}, {"Out"})
                    .AddInput("StridesTensorList", {"m", "n"})
                    .Set("axes", std::vector<std::int32_t>{0, 1})
                    .Set("starts", std::vector<std::int32_t>{0, -1})
                    .Set("ends", std::vector<std::int32_t>{3, -9})
                    .Set("decrease_axis", std::vector<std::int32_t>{0});
  Tensors inputs = {{"Input", Ramp(DType::kFp32, {3, 4}, 0, 1)},
                    {"m", TensorOf<std::int32_t>({1}, {3})},
                    {"n", TensorOf<std::int64_t>({1}, {-2})}};
  ExpectValues(RunOne(op, inputs, "Out"), {3, 1});
  inputs["n"] = TensorOf<std::int64_t>({1}, {0});
  ExpectError(op, inputs, "strided_slice: strides holds 0 for extent 1");
}

TEST(Reverse, ReversesAlongEachAxis) {
  const Tensors inputs = {{"X", Ramp(DType::kInt64, {2, 3}, 0, 1)}};
  const auto turned = [&](const std::vector<std::int32_t>& axis) {
    return RunOne(WithSlots("reverse", {"X"}, {"Out"}).Set("axis", axis), inputs, "Out");
  };
  ExpectValues(turned({0}), {3, 4, 5, 0, 1, 2});
  ExpectValues(turned({-1}), {2, 1, 0, 5, 4, 3});
  ExpectValues(turned({1, 0}), {5, 4, 3, 2, 1, 0});
  ExpectValues(turned({}), {0, 1, 2, 3, 4, 5});
}

}  // namespace
}  // namespace penstock::test
