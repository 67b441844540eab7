// Values that a program passes as tensors instead of attributes: axes, shapes, bounds.
#include <gtest/gtest.h>

#include "operators/all_ops.h"
#include "tests/ops/allocations.h"
#include "tests/ops/gradient_case.h"
#include "tests/ops/run_one.h"

namespace penstock::test {
namespace {

Tensor Whole(std::initializer_list<std::int32_t> values) {
  return TensorOf<std::int32_t>({static_cast<Dim>(values.size())}, values);
}

TensorDesc Float(const Shape& shape) {
  TensorDesc info;
  info.shape = shape;
  return info;
}

TensorDesc Int(const Shape& shape) {
  TensorDesc info = Float(shape);
  info.dtype = DType::kInt32;
  return info;
}

Shape Inferred(const Op& op, const TensorDescs& inputs, const std::string& out = "Out") {
  const Result<TensorDescs> infos = InferOp(AllOps(), op, inputs);
  PENSTOCK_CHECK(infos.ok(), infos.status().ToString());
  return infos->at(out).shape;
}

// Runs the op and returns its output; the kernel must not allocate when it runs with the same values again.
Tensor RunAgain(const Op& op, const Tensors& inputs, const std::string& out) {
  std::int64_t allocations = 0;
  const Result<Tensors> made = RunOp(AllOps(), op, inputs, {}, nullptr, {}, CountInto(allocations));
  PENSTOCK_CHECK(made.ok(), made.status().ToString());
  EXPECT_EQ(allocations, 0) << op.type() << " allocates when it runs again";
  return made->at(out);
}

TEST(Concat, TakesItsAxisFromATensor) {
  const Op op =
      Op("concat").AddInput("X", {"a", "b"}).AddInput("AxisTensor", {"axis"}).AddOutput("Out", {"Out"});
  EXPECT_EQ(Inferred(op, {{"a", Float({2, 2})}, {"b", Float({2, 2})}, {"axis", Int({1})}}),
            (Shape{kUnknownDim, kUnknownDim}));
  const auto inputs = [](std::int32_t axis, const Shape& b) {
    return Tensors{{"a", TensorOf<float>({2, 2}, {1, 2, 3, 4})},
                   {"b", Ramp(DType::kFp32, b, 5, 1)},
                   {"axis", Whole({axis})}};
  };
  ExpectValues(RunAgain(op, inputs(-1, {2, 1}), "Out"), {1, 2, 5, 3, 4, 6});
  EXPECT_EQ(RunOne(op, inputs(0, {1, 2}), "Out").shape(), (Shape{3, 2}));
  ExpectError(op, inputs(2, {2, 2}), "concat: axis (2) must be within the rank of X (2)");
  ExpectError(op, inputs(0, {2, 1}), "concat: extent 1 of X[1] (1) must equal that of X[0] (2)");
  Op grad("concat_grad");
  grad.AddInput("X", {"a", "b"}).AddInput("AxisTensor", {"axis"}).AddInput("Out@GRAD", {"dout"});
  grad.AddOutput("X@GRAD", {"da", "db"});
  Tensors known = inputs(1, {2, 1});
  known["dout"] = Ramp(DType::kFp32, {2, 3}, 0, 1);
  ExpectValues(RunAgain(grad, known, "db"), {2, 5});
  known["dout"] = Ramp(DType::kFp32, {3, 2}, 0, 1);
  ExpectError(grad, known, "concat_grad: shape of Out@GRAD ([3, 2]) must be [2, 3]");
}

TEST(Split, TakesItsAxisFromATensor) {
  Op op = WithSlots("split", {"X", "AxisTensor"}, {}).AddOutput("Out", {"a", "b"});
  op.Set("sections", std::vector<std::int32_t>{1, -1});
  const auto inputs = [](std::int32_t axis) {
    return Tensors{{"X", Ramp(DType::kFp32, {2, 3}, 0, 1)}, {"AxisTensor", Whole({axis})}};
  };
  ExpectValues(RunAgain(op, inputs(1), "b"), {1, 2, 4, 5});
  ExpectValues(RunOne(op, inputs(0), "b"), {3, 4, 5});
  ExpectError(op, inputs(-3), "split: axis (-3) must be within the rank of X (2)");
}

TEST(Split, TakesItsSectionsFromTensors) {
  Op op =
      WithSlots("split", {"X"}, {}).AddInput("SectionsTensorList", {"m", "n"}).AddOutput("Out", {"a", "b"});
  op.Set("axis", 1).Set("sections", std::vector<std::int32_t>{-1, 1});
  EXPECT_EQ(Inferred(op, {{"X", Float({2, 3})}, {"m", Int({1})}, {"n", Int({1})}}, "b"), (Shape{2, 1}));
  const auto inputs = [](std::int32_t m, std::int32_t n) {
    return Tensors{{"X", Ramp(DType::kFp32, {2, 3}, 0, 1)}, {"m", Whole({m})}, {"n", Whole({n})}};
  };
  ExpectValues(RunAgain(op, inputs(2, 1), "a"), {0, 1, 3, 4});
  ExpectValues(RunOne(op, inputs(-1, 2), "a"), {0, 3});
  ExpectError(op, inputs(2, 2), "split: sections [2, 2] must add up to 3");
  ExpectError(op, inputs(-2, 5), "split: sections [-2, 5] must add up to 3");
}

TEST(Unsqueeze2, TakesItsAxesFromTensors) {
  const Tensor x = Ramp(DType::kFp32, {2, 3}, 0, 1);
  const Op one = WithSlots("unsqueeze2", {"X", "AxesTensor"}, {"Out", "XShape"});
  EXPECT_EQ(RunAgain(one, {{"X", x}, {"AxesTensor", Whole({0, -1})}}, "Out").shape(), (Shape{1, 2, 3, 1}));
  ExpectError(one, {{"X", x}, {"AxesTensor", Whole({4})}}, "unsqueeze2: axes holds 4; it must be in [-3, 2]");
  const Op several = WithSlots("unsqueeze2", {"X"}, {"Out", "XShape"}).AddInput("AxesTensorList", {"a", "b"});
  EXPECT_EQ(Inferred(several, {{"X", Float({2, 3})}, {"a", Int({1})}, {"b", Int({1})}}).rank(), 4);
  const Tensor out = RunAgain(several, {{"X", x}, {"a", Whole({1})}, {"b", Whole({1})}}, "Out");
  EXPECT_EQ(out.shape(), (Shape{2, 1, 1, 3}));
  ExpectValues(out, {0, 1, 2, 3, 4, 5});
}

// Later layers can then be declared: fc needs the last extent.
TEST(TensorAttributes, InferenceUsesKnownAttributeValues) {
  const TensorDescs two = {{"X", Float({kUnknownDim, 6})}, {"a", Int({1})}, {"b", Int({1})}};
  Op reshape = WithSlots("reshape2", {"X"}, {"Out", "XShape"}).AddInput("ShapeTensor", {"a", "b"});
  EXPECT_EQ(Inferred(reshape.Set("shape", std::vector<std::int32_t>{-1, 128}), two),
            (Shape{kUnknownDim, 128}));
  EXPECT_EQ(Inferred(reshape.Set("shape", std::vector<std::int32_t>{-1, 0}), two), (Shape{kUnknownDim, 6}));
  Op fill = Op("fill_constant").AddInput("ShapeTensorList", {"a", "b"}).AddOutput("Out", {"Out"});
  EXPECT_EQ(Inferred(fill.Set("shape", std::vector<std::int64_t>{-1, 7}), two), (Shape{kUnknownDim, 7}));
  Op expand = WithSlots("expand", {"X"}, {"Out"}).AddInput("expand_times_tensor", {"a", "b"});
  EXPECT_EQ(Inferred(expand.Set("expand_times", std::vector<std::int32_t>{-1, 3}), two),
            (Shape{kUnknownDim, 18}));
  Op slice = WithSlots("slice", {"Input"}, {"Out"}).AddInput("StartsTensorList", {"a", "b"});
  slice.Set("axes", std::vector<std::int32_t>{0, 1}).Set("starts", std::vector<std::int32_t>{-1, 1});
  slice.Set("ends", std::vector<std::int32_t>{9, 4}).Set("infer_flags", std::vector<std::int32_t>{-1, 1});
  EXPECT_EQ(Inferred(slice, {{"Input", Float({8, 6})}, {"a", Int({1})}, {"b", Int({1})}}),
            (Shape{kUnknownDim, 3}));
}

TEST(Slice, TakesTheLastElementByAVariable) {
  Op op = WithSlots("slice", {"Input", "StartsTensor", "EndsTensor"}, {"Out"});
  op.Set("axes", std::vector<std::int32_t>{0}).Set("decrease_axis", std::vector<std::int32_t>{0});
  op.Set("infer_flags", std::vector<std::int32_t>{-1});
  const Tensors inputs = {
      {"Input", Ramp(DType::kFp32, {3, 2}, 0, 1)}, {"StartsTensor", Whole({-1})}, {"EndsTensor", Whole({0})}};
  ExpectValues(RunAgain(op, inputs, "Out"), {4, 5});
}

TEST(RefByTrainerId, GivesTheVariableOfThatTrainer) {
  const Op op = WithSlots("ref_by_trainer_id", {"TrainerId"}, {"Out"}).AddInput("X", {"a", "b"});
  EXPECT_EQ(Inferred(op, {{"a", Float({2, 2})}, {"b", Float({1, 2})}, {"TrainerId", Int({1})}}),
            (Shape{kUnknownDim, 2}));
  const auto inputs = [](std::int64_t id) {
    return Tensors{{"a", TensorOf<float>({2}, {1, 2})},
                   {"b", TensorOf<float>({2}, {3, 4})},
                   {"TrainerId", TensorOf<std::int64_t>({1}, {id})}};
  };
  ExpectValues(RunAgain(op, inputs(1), "Out"), {3, 4});
  ExpectValues(RunAgain(op, inputs(0), "Out"), {1, 2});
  ExpectError(op, inputs(2), "ref_by_trainer_id: TrainerId holds 2; there are 2 variables in X");
  ExpectError(op, inputs(-1), "ref_by_trainer_id: TrainerId holds -1; there are 2 variables in X");
}

TEST(Slice, TakesItsBoundsFromTensors) {
  Op op = WithSlots("slice", {"Input", "EndsTensor"}, {"Out"});
  op.AddInput("StartsTensorList", {"a", "b"}).Set("axes", std::vector<std::int32_t>{0, 1});
  const auto inputs = [](std::int64_t from) {
    return Tensors{{"Input", Ramp(DType::kFp32, {3, 3}, 0, 1)},
                   {"EndsTensor", TensorOf<std::int32_t>({2}, {3, -1})},
                   {"a", TensorOf<std::int64_t>({1}, {from})},
                   {"b", TensorOf<std::int32_t>({1}, {0})}};
  };
  const Tensor out = RunAgain(op, inputs(-2), "Out");
  EXPECT_EQ(out.shape(), (Shape{2, 2}));
  ExpectValues(out, {3, 4, 6, 7});
  ExpectError(op, inputs(3), "slice: [3, 3) leaves nothing of extent 0 of Input (3)");
  ExpectError(op, inputs(std::int64_t{1} << 40), "slice: a holds 1099511627776, which does not fit 32 bits");
}

TEST(Expand, TakesExpandTimesFromATensor) {
  const Op op = WithSlots("expand", {"X", "ExpandTimes"}, {"Out"});
  const auto inputs = [](std::int32_t times) {
    return Tensors{{"X", TensorOf<std::int64_t>({1, 2}, {1, 2})},
                   {"ExpandTimes", TensorOf<std::int32_t>({2}, {2, times})}};
  };
  ExpectValues(RunAgain(op, inputs(2), "Out"), {1, 2, 1, 2, 1, 2, 1, 2});
  ExpectError(op, inputs(-1), "expand: expand_times holds -1; each must be at least 1");
}

TEST(Reshape2, TakesItsShapeFromTensorsAlsoInPlace) {
  for (const char* out : {"Out", "X"}) {
    Op op = Op("reshape2").AddInput("X", {"X"}).AddInput("ShapeTensor", {"a", "b"}).AddOutput("Out", {out});
    op.AddOutput("XShape", {"XShape"});
    Tensors inputs = {{"X", Ramp(DType::kFp32, {2, 3}, 0, 1)},
                      {"a", TensorOf<std::int32_t>({1}, {3})},
                      {"b", TensorOf<std::int32_t>({1}, {-1})}};
    EXPECT_EQ(RunOne(op, inputs, out).shape(), (Shape{3, 2}));
    ExpectValues(RunOne(op, inputs, out), {0, 1, 2, 3, 4, 5});
    inputs["a"] = TensorOf<std::int32_t>({1}, {4});
    ExpectError(op, inputs, "reshape2: X ([2, 3], 6 elements) cannot take shape [4, ?]");
  }
}

TEST(TopK, TakesKFromATensor) {
  const Op op = WithSlots("top_k", {"X", "K"}, {"Out", "Indices"});
  const Tensor x = TensorOf<float>({2, 3}, {1, 3, 2, 6, 5, 4});
  ExpectValues(RunOne(op, {{"X", x}, {"K", TensorOf<std::int32_t>({1}, {2})}}, "Out"), {3, 2, 6, 5});
  ExpectError(op, {{"X", x}, {"K", TensorOf<std::int64_t>({1}, {4})}},
              "top_k: K holds 4; it must be in [1, 3], the last extent of X");
}

TEST(FillConstant, TakesItsShapeFromATensor) {
  const Op op = WithSlots("fill_constant", {"ShapeTensor"}, {"Out"}).Set("value", 2.0f);
  const Tensor out = RunAgain(op, {{"ShapeTensor", TensorOf<std::int64_t>({2}, {1, 2})}}, "Out");
  EXPECT_EQ(out.shape(), (Shape{1, 2}));
  ExpectValues(out, {2, 2});
  ExpectError(op, {{"ShapeTensor", TensorOf<std::int64_t>({1}, {-2})}},
              "fill_constant: its shape from tensors holds -2");
}

TEST(OneHot, TakesItsDepthFromATensor) {
  const Op op = WithSlots("one_hot", {"X", "depth_tensor"}, {"Out"});
  const Tensor x = TensorOf<std::int64_t>({2, 1}, {1, 0});
  ExpectValues(RunOne(op, {{"X", x}, {"depth_tensor", TensorOf<std::int32_t>({1}, {2})}}, "Out"),
               {0, 1, 1, 0});
  ExpectError(op, {{"X", x}, {"depth_tensor", TensorOf<std::int32_t>({1}, {0})}},
              "one_hot: depth (0) must be at least 1");
}

TEST(UniformRandom, TakesItsShapeFromATensor) {
  Op op = WithSlots("uniform_random", {"ShapeTensor"}, {"Out"}).Set("seed", 5);
  const Tensor whole = RunOne(op, {{"ShapeTensor", TensorOf<std::int32_t>({2}, {2, 3})}}, "Out");
  Op fixed = Op("uniform_random").AddOutput("Out", {"Out"}).Set("seed", 5);
  fixed.Set("shape", std::vector<std::int64_t>{2, 3});
  EXPECT_EQ(Near(whole, RunOne(fixed, {}, "Out"), 0, 0).ToString(), "ok");
}

TEST(Pad2d, TakesItsPaddingsFromATensor) {
  Op op = WithSlots("pad2d", {"X", "Paddings"}, {"Out"}).Set("paddings", std::vector<std::int32_t>{});
  op.Set("mode", "reflect");
  const auto inputs = [](std::int32_t left) {
    return Tensors{{"X", TensorOf<float>({1, 1, 1, 3}, {1, 2, 3})},
                   {"Paddings", TensorOf<std::int32_t>({4}, {0, 0, left, 1})}};
  };
  ExpectValues(RunAgain(op, inputs(2), "Out"), {3, 2, 1, 2, 3, 2});
  ExpectError(op, inputs(3), "pad2d: a padding (3) must be smaller than the extent it mirrors (3)");
}

}  // namespace
}  // namespace penstock::test
