// Values for which the corpus has no case: aliasing, integers, limits, and errors that only a running kernel
// can detect.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "operators/all_ops.h"
#include "tests/ops/run_one.h"
#include "tests/support/corpus.h"
#include "tests/support/npz.h"
#include "tests/support/op_harness.h"

namespace penstock::test {
namespace {

std::string ErrorOf(const Op& op, const Tensors& inputs) {
  return RunOp(AllOps(), op, inputs).status().ToString();
}

TEST(Sum, MayWriteIntoAnyOfItsArguments) {
  const Tensors inputs = {{"a", TensorOf<float>({2}, {1, 2})}, {"b", TensorOf<float>({2}, {10, 20})}};
  for (const char* out : {"a", "b", "c"}) {
    const Op op = Op("sum").AddInput("X", {"a", "b"}).AddOutput("Out", {out});
    ExpectValues(RunOne(op, inputs, out), {11, 22});
  }
}

TEST(Sum, AddsMoreThanOneBlockOfElements) {
  const Op op = Op("sum").AddInput("X", {"a", "b", "a"}).AddOutput("Out", {"o"});
  const Tensor out =
      RunOne(op, {{"a", Ramp(DType::kFp32, {3000}, 0, 1)}, {"b", Ramp(DType::kFp32, {3000}, 1, 0)}}, "o");
  for (std::int64_t i = 0; i < 3000; ++i) ASSERT_EQ(out.Data<float>()[i], static_cast<float>(2 * i + 1));
}

TEST(Scale, AddsTheBiasBeforeOrAfterScaling) {
  const Tensors inputs = {{"x", TensorOf<float>({2}, {1, 2})}};
  Op op = Op("scale").AddInput("X", {"x"}).AddOutput("Out", {"x"}).Set("scale", 3.0f).Set("bias", 1.0f);
  ExpectValues(RunOne(op, inputs, "x"), {4, 7});
  ExpectValues(RunOne(op.Set("bias_after_scale", false), inputs, "x"), {6, 9});
}

TEST(DgcMomentum, IsMomentumBeforeRampUpAndSgdAfter) {
  Op op("dgc_momentum");
  op.AddInput("Param", {"p"})
      .AddInput("Grad", {"g"})
      .AddInput("Velocity", {"v"})
      .AddInput("LearningRate", {"r"});
  op.AddInput("current_step", {"step"}).AddInput("nranks", {"n"});
  op.AddOutput("ParamOut", {"p"})
      .AddOutput("VelocityOut", {"v"})
      .AddOutput("Grad_out", {"g"})
      .Set("mu", 0.5f);
  const auto run = [&](float step, float begin, bool nesterov, const std::string& out) {
    const Tensors inputs = {{"p", TensorOf<float>({1}, {10})},      {"g", TensorOf<float>({1}, {8})},
                            {"v", TensorOf<float>({1}, {6})},       {"r", TensorOf<float>({1}, {0.5f})},
                            {"step", TensorOf<float>({1}, {step})}, {"n", TensorOf<float>({1}, {2})}};
    return RunOne(op.Set("rampup_begin_step", begin).Set("use_nesterov", nesterov), inputs, out);
  };
  ExpectValues(run(3, 4, false, "g"), {4});
  ExpectValues(run(3, 4, false, "v"), {7});
  ExpectValues(run(3, 4, false, "p"), {10 - 0.5 * 7});
  ExpectValues(run(3, 4, true, "p"), {10 - 0.5 * (4 + 0.5 * 7)});
  ExpectValues(run(4, 4, false, "p"), {10 - 0.5 * 4});
  ExpectValues(run(4, 4, true, "v"), {6});
  ExpectValues(run(4, -1, false, "p"), {10});
  ExpectValues(run(4, -1, false, "g"), {8});
}

TEST(Dgc, SendsTheLargestElementsAfterRampUp) {
  Op op("dgc");
  op.AddInput("U", {"u"}).AddInput("V", {"v"}).AddInput("Grad", {"g"}).AddInput("Param", {"p"});
  op.AddInput("current_step", {"step"}).AddInput("nranks", {"n"});
  op.AddOutput("U_out", {"u"}).AddOutput("V_out", {"v"}).AddOutput("Grad_out", {"g"}).AddOutput("k", {"k"});
  op.Set("m", 0.5f).Set("sparsity", std::vector<float>{0.5f, 0.75f});
  op.Set("rampup_begin_step", 3.0f).Set("rampup_step", 4.0f);
  const auto inputs = [](float step, float ranks) {
    return Tensors{{"u", TensorOf<float>({4}, {1, 2, 0, 0})},
                   {"v", TensorOf<float>({4}, {0, 0, 5, 0})},
                   {"g", TensorOf<float>({4}, {1, -1, 1, 2})},
                   {"p", TensorOf<float>({4}, {2, -8, 0, 0})},
                   {"step", TensorOf<float>({1}, {step})},
                   {"n", TensorOf<float>({1}, {ranks})},
                   {"k", TensorOf<float>({1}, {0})}};
  };
  ExpectValues(RunOne(op, inputs(2, 2), "g"), {1, -1, 1, 2});
  ExpectValues(RunOne(op, inputs(2, 2), "u"), {1, 2, 0, 0});
  ExpectValues(RunOne(op, inputs(3, 2), "g"), {0, 0, 7, 4});
  ExpectValues(RunOne(op, inputs(3, 2), "u"), {2.5, -1, 0, 0});
  ExpectValues(RunOne(op, inputs(3, 2), "v"), {2.5, -1, 0, 0});
  ExpectValues(RunOne(op, inputs(3, 2), "k"), {2});
  ExpectValues(RunOne(op, inputs(5, 2), "g"), {0, 0, 7, 0});
  ExpectValues(RunOne(op, inputs(500, 2), "k"), {1});
  EXPECT_NE(ErrorOf(op, inputs(3, -1)).find("nranks is -1; it must be at least 1"), std::string::npos);
  op.Set("regular_coeff", 0.5f);
  ExpectValues(RunOne(op.Set("regular_type", 1), inputs(3, 2), "v"), {3, -1.5, 0, 0});
  ExpectValues(RunOne(op.Set("regular_type", 2), inputs(3, 2), "g"), {0, -5, 7, 0});
  op.Set("regular_type", 0).Set("use_nesterov", true);
  ExpectValues(RunOne(op, inputs(3, 2), "g"), {0, 0, 8, 6});
  ExpectValues(RunOne(op, inputs(3, 2), "u"), {1.5, 0, 0, 0});
}

TEST(Dgc, SelectsNaNAndTheFirstOfEqualElements) {
  Op op("dgc");
  op.AddInput("U", {"u"}).AddInput("V", {"v"}).AddInput("Grad", {"g"}).AddInput("Param", {"v"});
  op.AddInput("current_step", {"n"}).AddInput("nranks", {"n"});
  op.AddOutput("U_out", {"u"}).AddOutput("V_out", {"v"}).AddOutput("Grad_out", {"g"});
  op.Set("sparsity", std::vector<float>{0.5f}).Set("rampup_step", 1.0f);
  const auto passed = [&](std::initializer_list<float> grad) {
    return RunOne(op,
                  {{"u", TensorOf<float>({4}, {0, 0, 0, 0})},
                   {"v", TensorOf<float>({4}, {0, 0, 0, 0})},
                   {"g", TensorOf<float>({4}, grad)},
                   {"n", TensorOf<float>({1}, {1})}},
                  "g");
  };
  ExpectValues(passed({1, -3, 3, 3}), {0, -3, 3, 0});
  const Tensor out = passed({1, 2, std::nanf(""), 3});
  EXPECT_TRUE(std::isnan(out.Data<float>()[2]));
  EXPECT_EQ(out.Data<float>()[3], 3.0f);
}

TEST(DgcClipByNorm, ClipsTheNormAfterRampUp) {
  Op op("dgc_clip_by_norm");
  op.AddInput("X", {"x"}).AddInput("current_step", {"step"}).AddOutput("Out", {"o"});
  op.Set("max_norm", 2.5f).Set("rampup_begin_step", 1.0f);
  const auto run = [&](float step) {
    return RunOne(op, {{"x", TensorOf<float>({2}, {3, 4})}, {"step", TensorOf<float>({1}, {step})}}, "o");
  };
  ExpectValues(run(0), {3, 4});
  ExpectValues(run(1), {1.5, 2});
}

TEST(Compare, GivesTruthElementByElement) {
  const float nan = std::nanf("");
  const Tensors inputs = {{"x", TensorOf<float>({2, 3}, {1, 2, 3, nan, 2, 1})},
                          {"y", TensorOf<float>({3}, {2, 2, 2})}};
  const auto run = [&](const std::string& type) {
    return RunOne(Op(type).AddInput("X", {"x"}).AddInput("Y", {"y"}).AddOutput("Out", {"o"}), inputs, "o");
  };
  ExpectValues(run("less_than"), {1, 0, 0, 0, 0, 1});
  ExpectValues(run("less_equal"), {1, 1, 0, 0, 1, 1});
  ExpectValues(run("greater_than"), {0, 0, 1, 0, 0, 0});
  ExpectValues(run("greater_equal"), {0, 1, 1, 0, 1, 0});
  ExpectValues(run("equal"), {0, 1, 0, 0, 1, 0});
  ExpectValues(run("not_equal"), {1, 0, 1, 1, 0, 1});
}

TEST(Logical, FollowsItsTruthTable) {
  const Tensors inputs = {{"x", TensorOf<bool>({4}, {false, false, true, true})},
                          {"y", TensorOf<bool>({4}, {false, true, false, true})}};
  const auto run = [&](const std::string& type) {
    return RunOne(Op(type).AddInput("X", {"x"}).AddInput("Y", {"y"}).AddOutput("Out", {"o"}), inputs, "o");
  };
  ExpectValues(run("logical_and"), {0, 0, 0, 1});
  ExpectValues(run("logical_or"), {0, 1, 1, 1});
  ExpectValues(run("logical_xor"), {0, 1, 1, 0});
  ExpectValues(RunOne(Op("logical_not").AddInput("X", {"x"}).AddOutput("Out", {"o"}), inputs, "o"),
               {1, 1, 0, 0});
}

TEST(Increment, CountsInPlace) {
  const Op op = Op("increment").AddInput("X", {"n"}).AddOutput("Out", {"n"}).Set("step", 2.0f);
  EXPECT_EQ(RunOne(op, {{"n", TensorOf<std::int64_t>({1}, {9007199254740993})}}, "n").Data<std::int64_t>()[0],
            9007199254740995);
}

// Under UndefinedBehaviorSanitizer: without an overflow of signed integers.
TEST(Increment, WrapsAroundAtTheLastInteger) {
  const Op op = Op("increment").AddInput("X", {"n"}).AddOutput("Out", {"n"});
  constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(RunOne(op, {{"n", TensorOf<std::int64_t>({1}, {kLast})}}, "n").Data<std::int64_t>()[0],
            std::numeric_limits<std::int64_t>::min());
}

TEST(Clip, TakesBoundsFromTensorsFirst) {
  const Op op = Op("clip")
                    .AddInput("X", {"x"})
                    .AddInput("Max", {"most"})
                    .AddOutput("Out", {"x"})
                    .Set("min", -1.0f)
                    .Set("max", 0.0f);
  const Tensors inputs = {{"x", TensorOf<float>({3}, {-2, 1, 3})}, {"most", TensorOf<float>({1}, {2})}};
  ExpectValues(RunOne(op, inputs, "x"), {-1, 1, 2});
}

TEST(OneHot, RefusesOrZerosIdsOutOfRange) {
  Op op = Op("one_hot").AddInput("X", {"x"}).AddOutput("Out", {"o"}).Set("depth", 3);
  const Tensors inputs = {{"x", TensorOf<std::int64_t>({2, 1}, {2, 3})}};
  EXPECT_NE(ErrorOf(op, inputs).find("one_hot: 3 must be in [0, 3)"), std::string::npos);
  ExpectValues(RunOne(op.Set("allow_out_of_range", true), inputs, "o"), {0, 0, 1, 0, 0, 0});
}

TEST(SigmoidCrossEntropy, SkipsIgnoredLabels) {
  const Op op = Op("sigmoid_cross_entropy_with_logits")
                    .AddInput("X", {"x"})
                    .AddInput("Label", {"l"})
                    .AddOutput("Out", {"o"})
                    .Set("ignore_index", -1)
                    .Set("normalize", true);
  const Tensors inputs = {{"x", TensorOf<float>({3}, {0, 0, 5})}, {"l", TensorOf<float>({3}, {0, 1, -1})}};
  const double half = std::log(2.0) / 2;
  ExpectValues(RunOne(op, inputs, "o"), {half, half, 0});
}

TEST(FillConstantBatchSizeLike, CopiesOneDimension) {
  const Op op = Op("fill_constant_batch_size_like")
                    .AddInput("Input", {"x"})
                    .AddOutput("Out", {"o"})
                    .Set("shape", std::vector<std::int32_t>{-1, 2})
                    .Set("value", 0.5f);
  ExpectValues(RunOne(op, {{"x", Ramp(DType::kFp32, {3, 7}, 0, 1)}}, "o"), {0.5, 0.5, 0.5, 0.5, 0.5, 0.5});
}

TEST(Elementwise, DividesIntegersWithoutTrapping) {
  constexpr std::int32_t kLeast = std::numeric_limits<std::int32_t>::min();
  const Op op = Op("elementwise_div").AddInput("X", {"x"}).AddInput("Y", {"y"}).AddOutput("Out", {"o"});
  const Tensor out = RunOne(
      op,
      {{"x", TensorOf<std::int32_t>({3}, {7, -7, kLeast})}, {"y", TensorOf<std::int32_t>({3}, {2, 2, -1})}},
      "o");
  ExpectValues(out, {3, -3, static_cast<double>(kLeast)});
  EXPECT_NE(ErrorOf(op, {{"x", TensorOf<std::int32_t>({1}, {7})}, {"y", TensorOf<std::int32_t>({1}, {0})}})
                .find("E-op-divide-zero"),
            std::string::npos);
}

TEST(Elementwise, TakesEmptyTensors) {
  const Op op = Op("elementwise_add").AddInput("X", {"x"}).AddInput("Y", {"y"}).AddOutput("Out", {"o"});
  EXPECT_EQ(
      RunOne(op, {{"x", Tensor(DType::kFp32, {0, 3})}, {"y", TensorOf<float>({3}, {1, 2, 3})}}, "o").count(),
      0);
}

TEST(FillConstant, ReadsItsValueFromTextFirst) {
  Op op = Op("fill_constant")
              .AddOutput("Out", {"o"})
              .Set("shape", std::vector<std::int64_t>{2})
              .Set("value", 3.0f);
  ExpectValues(RunOne(op, {}, "o"), {3, 3});
  ExpectValues(RunOne(op.Set("str_value", "0.25"), {}, "o"), {0.25, 0.25});
  op.Set("dtype", static_cast<std::int32_t>(DType::kInt64)).Set("str_value", "9007199254740993");
  EXPECT_EQ(RunOne(op, {}, "o").Data<std::int64_t>()[1], 9007199254740993);
  EXPECT_NE(ErrorOf(op.Set("str_value", "many"), {}).find("must be a number that fits i64"),
            std::string::npos);
}

TEST(TopK, IsStableAndPutsNanFirst) {
  const Op op =
      Op("top_k").AddInput("X", {"x"}).AddOutput("Out", {"o"}).AddOutput("Indices", {"i"}).Set("k", 3);
  const float nan = std::nanf("");
  const Tensor indices = RunOne(op, {{"x", TensorOf<float>({2, 4}, {1, 5, 5, 2, 1, nan, 7, 7})}}, "i");
  ExpectValues(indices, {1, 2, 3, 1, 2, 3});
}

TEST(Accuracy, CountsRowsWhoseLabelIsInTheTopK) {
  const Op op = Op("accuracy")
                    .AddInput("Out", {"s"})
                    .AddInput("Indices", {"i"})
                    .AddInput("Label", {"l"})
                    .AddOutput("Accuracy", {"a"})
                    .AddOutput("Correct", {"c"})
                    .AddOutput("Total", {"t"});
  const Tensors inputs = {{"s", Ramp(DType::kFp32, {4, 2}, 0, 1)},
                          {"i", TensorOf<std::int64_t>({4, 2}, {0, 1, 2, 3, 4, 5, 6, 7})},
                          {"l", TensorOf<std::int64_t>({4, 1}, {1, 0, 4, 9})}};
  ExpectValues(RunOne(op, inputs, "a"), {0.5});
  ExpectValues(RunOne(op, inputs, "c"), {2});
  ExpectValues(RunOne(op, inputs, "t"), {4});
}

TEST(CrossEntropy, RefusesALabelOutsideTheClasses) {
  const Op op = Op("cross_entropy").AddInput("X", {"x"}).AddInput("Label", {"l"}).AddOutput("Y", {"y"});
  EXPECT_EQ(ErrorOf(op, {{"x", Ramp(DType::kFp32, {2, 3}, 0.1, 0.1)},
                         {"l", TensorOf<std::int64_t>({2, 1}, {2, 3})}}),
            "cross_entropy: label 3 of row 1 must be in [0, 3)   [E-op-label]");
}

TEST(CrossEntropy, KeepsTheCostOfAnImpossibleLabelFinite) {
  const Op op = Op("cross_entropy").AddInput("X", {"x"}).AddInput("Label", {"l"}).AddOutput("Y", {"y"});
  ExpectValues(
      RunOne(op, {{"x", TensorOf<float>({1, 2}, {0, 1})}, {"l", TensorOf<std::int64_t>({1, 1}, {0})}}, "y"),
      {1e20});
}

TEST(AssignValue, RefusesAnotherNumberOfValues) {
  Op op =
      Op("assign_value").AddOutput("Out", {"o"}).Set("shape", std::vector<std::int32_t>{3}).Set("dtype", 5);
  op.Set("fp32_values", std::vector<float>{1, 2});
  EXPECT_NE(ErrorOf(op, {}).find("needs 3 values; the attribute holds 2"), std::string::npos);
}

TEST(Cast, ConvertsAsCppDoes) {
  const Op op =
      Op("cast").AddInput("X", {"x"}).AddOutput("Out", {"o"}).Set("in_dtype", 5).Set("out_dtype", 2);
  ExpectValues(RunOne(op, {{"x", TensorOf<float>({3}, {-1.5, 0.9, 2})}}, "o"), {-1, 0, 2});
}

TEST(Reshape2, MayWorkInPlace) {
  const Op op = Op("reshape2")
                    .AddInput("X", {"x"})
                    .AddOutput("Out", {"x"})
                    .AddOutput("XShape", {"s"})
                    .Set("shape", std::vector<std::int32_t>{3, 2});
  EXPECT_EQ(RunOne(op, {{"x", Ramp(DType::kFp32, {2, 3}, 0, 1)}}, "x").shape(), (Shape{3, 2}));
}

TEST(Optimizers, WorkInPlaceWithFluidsResults) {
  if (CorpusFolder().empty()) GTEST_SKIP() << "the corpus is not beside this checkout";
  const Result<Arrays> arrays = ReadNpz(BytesOf(CorpusFolder() + "/open/ops_sr/adam_dense_inplace.npz"));
  ASSERT_TRUE(arrays.ok());
  Op op("adam");
  Tensors inputs;
  for (const auto& [name, tensor] : *arrays) {
    if (!StartsWith(name, "in:")) continue;
    const std::string var = name.substr(3);
    const std::string slot = var.substr(0, var.size() - 2);
    inputs[var] = tensor;
    op.AddInput(slot, {var});
    if (slot != "Grad" && slot != "LearningRate") op.AddOutput(slot + "Out", {var});
  }
  const Result<Tensors> out = RunOp(AllOps(), op, inputs);
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  for (const auto& [var, tensor] : *out) {
    const Status near = Near(tensor, arrays->at("out:" + var), 1e-6, 1e-7);
    EXPECT_TRUE(near.ok()) << var << ": " << near.ToString();
  }
}

}  // namespace
}  // namespace penstock::test
