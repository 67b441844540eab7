// Values and run-time errors of dense ops for which the corpus has no case.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "operators/all_ops.h"
#include "tests/ops/gradient_case.h"
#include "tests/ops/run_one.h"

namespace penstock::test {
namespace {

TEST(Modulo, FollowsIntegerAndFloatRulesAndRefusesZero) {
  const Op op = WithSlots("elementwise_mod", {"X", "Y"}, {"Out"});
  constexpr std::int32_t kLeast = std::numeric_limits<std::int32_t>::min();
  const Tensor x = TensorOf<std::int32_t>({5}, {7, -7, 7, -7, kLeast});
  ExpectValues(RunOne(op, {{"X", x}, {"Y", TensorOf<std::int32_t>({5}, {3, 3, -3, -3, -1})}}, "Out"),
               {1, -1, 1, -1, 0});
  ExpectValues(
      RunOne(op, {{"X", TensorOf<float>({2}, {-5.5f, 5.5f})}, {"Y", TensorOf<float>({1}, {2})}}, "Out"),
      {0.5, 1.5});
  ExpectError(op, {{"X", x}, {"Y", TensorOf<std::int32_t>({1}, {0})}}, "elementwise_mod: Y (Y) holds a zero");
}

TEST(FloorDivision, RoundsTowardsZeroAndRefusesZero) {
  const Op op = WithSlots("elementwise_floordiv", {"X", "Y"}, {"Out"});
  const Tensor x = TensorOf<std::int64_t>({2}, {7, -7});
  ExpectValues(RunOne(op, {{"X", x}, {"Y", TensorOf<std::int64_t>({1}, {2})}}, "Out"), {3, -3});
  ExpectError(op, {{"X", x}, {"Y", TensorOf<std::int64_t>({2}, {1, 0})}},
              "elementwise_floordiv: Y (Y) holds a zero");
}

TEST(Integers, UnaryMathOpsTakeIntegers) {
  const Tensors inputs = {{"X", TensorOf<std::int32_t>({4}, {-3, 0, 2, 30})}};
  ExpectValues(RunOne(WithSlots("abs", {"X"}, {"Out"}), inputs, "Out"), {3, 0, 2, 30});
  ExpectValues(RunOne(WithSlots("square", {"X"}, {"Out"}), inputs, "Out"), {9, 0, 4, 900});
  ExpectValues(RunOne(WithSlots("exp", {"X"}, {"Out"}), inputs, "Out"), {0, 1, 7, 2147483647});
  const Op pow = WithSlots("pow", {"X"}, {"Out"});
  ExpectValues(RunOne(Op(pow).Set("factor", 3.0f), inputs, "Out"), {-27, 0, 8, 27000});
  ExpectValues(RunOne(Op(pow).Set("factor", 0.0f), inputs, "Out"), {1, 1, 1, 1});
  for (const float factor : {-1.0f, 0.5f}) {
    ExpectError(Op(pow).Set("factor", factor), inputs,
                StrCat("pow: factor (", factor, ") must be a whole number of at least 0 for integers"));
  }
  Tensors with_factor = inputs;
  with_factor["FactorTensor"] = TensorOf<std::int32_t>({1}, {-2});
  ExpectError(WithSlots("pow", {"X", "FactorTensor"}, {"Out"}), with_factor,
              "pow: FactorTensor holds -2; integers need a whole number of at least 0");
}

TEST(Integers, AttributesAreClampedToTheIntegerRange) {
  const Tensors inputs = {{"X", TensorOf<std::int32_t>({2}, {-3, 5})}};
  const Op scale = WithSlots("scale", {"X"}, {"Out"}).Set("scale", 0.0f).Set("bias", 1e20f);
  ExpectValues(RunOne(scale, inputs, "Out"), {2147483647, 2147483647});
  const Tensors image = {{"X", TensorOf<std::int64_t>({1, 1, 1, 2}, {4, 5})}};
  const Op pad = WithSlots("pad2d", {"X"}, {"Out"}).Set("paddings", std::vector<std::int32_t>{0, 0, 1, 0});
  ExpectValues(RunOne(Op(pad).Set("pad_value", 2.5f), image, "Out"), {2, 4, 5});
  ExpectValues(RunOne(Op(pad).Set("pad_value", -1e30f), image, "Out"), {-9223372036854775808.0, 4, 5});
}

TEST(Reductions, AreComputedInTheResultType) {
  const Tensors inputs = {{"X", TensorOf<float>({2, 3}, {-1.6f, 1.2f, 2.9f, 2.5f, 2.3f, 1.4f})}};
  Op op = WithSlots("reduce_mean", {"X"}, {"Out"}).Set("dim", std::vector<std::int32_t>{1});
  op.Set("out_dtype", static_cast<std::int32_t>(DType::kInt32));
  ExpectValues(RunOne(op, inputs, "Out"), {0, 1});  // for -1, 1, 2 and 2, 2, 1
  op.Set("out_dtype", static_cast<std::int32_t>(DType::kFp64));
  EXPECT_EQ(RunOne(op, inputs, "Out").dtype(), DType::kFp64);

  Op grad = WithSlots("reduce_max_grad", {"X", "Out", "Out@GRAD"}, {"X@GRAD"});
  grad.Set("dim", std::vector<std::int32_t>{1}).Set("out_dtype", static_cast<std::int32_t>(DType::kFp64));
  Tensors known = inputs;
  known["Out"] = TensorOf<double>({2}, {static_cast<double>(2.9f), static_cast<double>(2.5f)});
  known["Out@GRAD"] = TensorOf<double>({2}, {3, 4});
  const Tensor dx = RunOne(grad, known, "X@GRAD");
  EXPECT_EQ(dx.dtype(), DType::kFp32);
  ExpectValues(dx, {0, 0, 3, 4, 0, 0});
  known["Out"] = TensorOf<float>({2}, {2.9f, 2.5f});
  ExpectError(grad, known, "reduce_max_grad: element type of Out@GRAD (f64) must equal that of Out (f32)");
}

TEST(Reductions, MeanOfAnEmptyIntegerTensorIsRefused) {
  const Op op = WithSlots("reduce_mean", {"X"}, {"Out"});
  ExpectError(op, {{"X", Tensor(DType::kInt64, {0, 3})}},
              "reduce_mean: X ([0, 3]) has no integers to take the mean of");
}

// Products of f32 and of f64 come from different libraries.
TEST(Matmul, GradientOfThinMatricesAgreesInBothPrecisions) {
  Op grad = WithSlots("matmul_grad", {"X", "Y", "Out@GRAD"}, {"X@GRAD", "Y@GRAD"});
  grad.Set("transpose_X", true).Set("transpose_Y", true);
  struct Shapes {
    Shape x, y, out;
  };
  for (const Shapes& s : {Shapes{{3}, {4}, {3, 4}},
                          {{2, 3, 1}, {2, 1, 3}, {2, 1, 1}},
                          {{2, 1, 3}, {2, 3, 1}, {2, 3, 3}},
                          {{4, 1}, {1, 4}, {1, 1}}}) {
    const Tensors wide = {
        {"X", Values(s.x)}, {"Y", Values(s.y, -1, 1, 3)}, {"Out@GRAD", Values(s.out, -1, 1, 5)}};
    Tensors narrow;
    for (const auto& [name, tensor] : wide) {
      Tensor& to = narrow[name] = Tensor(DType::kFp32, tensor.shape());
      for (std::int64_t i = 0; i < to.count(); ++i)
        to.Data<float>()[i] = static_cast<float>(ElementAt(tensor, i));
    }
    for (const char* out : {"X@GRAD", "Y@GRAD"}) {
      const Tensor expected = RunOne(grad, wide, out), made = RunOne(grad, narrow, out);
      for (std::int64_t i = 0; i < expected.count(); ++i)
        EXPECT_NEAR(ElementAt(made, i), ElementAt(expected, i), 1e-5) << StrCat(s.x, " ", out);
    }
  }
}

TEST(CrossEntropy, LabelsOfRankOneGiveACostOfRankOne) {
  const Tensors inputs = {{"X", TensorOf<float>({2, 2}, {0.25f, 0.75f, 0.5f, 0.5f})},
                          {"Label", TensorOf<std::int64_t>({2}, {1, 0})},
                          {"Y@GRAD", TensorOf<float>({2}, {3, 4})}};
  const Tensor cost = RunOne(WithSlots("cross_entropy", {"X", "Label"}, {"Y"}), inputs, "Y");
  EXPECT_EQ(cost.shape(), Shape({2}));
  ExpectValues(cost, {-std::log(0.75), -std::log(0.5)});
  ExpectValues(
      RunOne(WithSlots("cross_entropy_grad", {"X", "Label", "Y@GRAD"}, {"X@GRAD"}), inputs, "X@GRAD"),
      {0, -4, -8, 0});
}

TEST(Sum, IgnoresEmptyArguments) {
  const Op op = Op("sum").AddInput("X", {"a", "b", "c"}).AddOutput("Out", {"a"});
  const Tensors inputs = {{"a", Tensor(DType::kFp32, {0, 2})},
                          {"b", TensorOf<float>({1, 2}, {1, 2})},
                          {"c", TensorOf<float>({1, 2}, {3, 4})}};
  ExpectValues(RunOne(op, inputs, "a"), {4, 6});
}

TEST(Cumsum, SupportsReverseAndExclusive) {
  const Tensors inputs = {{"X", TensorOf<std::int64_t>({2, 3}, {1, 2, 3, 4, 5, 6})}};
  Op op = WithSlots("cumsum", {"X"}, {"Out"});
  ExpectValues(RunOne(op, inputs, "Out"), {1, 3, 6, 4, 9, 15});
  ExpectValues(RunOne(op.Set("exclusive", true), inputs, "Out"), {0, 1, 3, 0, 4, 9});
  ExpectValues(RunOne(op.Set("reverse", true), inputs, "Out"), {5, 3, 0, 11, 6, 0});
  ExpectValues(RunOne(op.Set("axis", 0), inputs, "Out"), {4, 5, 6, 0, 0, 0});
}

TEST(ArgMax, PrefersNanThenTheFirstMaximum) {
  const float nan = std::nanf("");
  const Tensors inputs = {{"X", TensorOf<float>({2, 3}, {5, 5, 1, 2, nan, 7})}};
  const std::int64_t last = -1, first = 0;
  ExpectValues(RunOne(WithSlots("arg_max", {"X"}, {"Out"}).Set("axis", last), inputs, "Out"), {0, 1});
  ExpectValues(RunOne(WithSlots("arg_min", {"X"}, {"Out"}).Set("axis", last), inputs, "Out"), {2, 1});
  ExpectValues(RunOne(WithSlots("arg_max", {"X"}, {"Out"}).Set("axis", first), inputs, "Out"), {0, 1, 1});
}

TEST(Argsort, IsStableAndPutsNanLast) {
  const float nan = std::nanf("");
  const Tensors inputs = {{"X", TensorOf<float>({5}, {3, nan, 1, 3, 2})}};
  Op op = WithSlots("argsort", {"X"}, {"Out", "Indices"});
  ExpectValues(RunOne(op, inputs, "Indices"), {2, 4, 0, 3, 1});
  ExpectValues(RunOne(op.Set("descending", true), inputs, "Indices"), {1, 0, 3, 4, 2});
}

TEST(Isfinite, DetectsInfinitiesAndNan) {
  const float inf = std::numeric_limits<float>::infinity();
  const auto run = [](const std::string& type, float value) {
    const Tensors inputs = {{"X", TensorOf<float>({2}, {1, value})}};
    return ElementAt(RunOne(WithSlots(type, {"X"}, {"Out"}), inputs, "Out"), 0) != 0;
  };
  EXPECT_TRUE(run("isfinite", 2));
  EXPECT_FALSE(run("isfinite", -inf));
  EXPECT_FALSE(run("isfinite", std::nanf("")));
  EXPECT_TRUE(run("isinf", inf));
  EXPECT_FALSE(run("isinf", std::nanf("")));
  EXPECT_TRUE(run("isnan", std::nanf("")));
  EXPECT_FALSE(run("isnan", inf));
}

TEST(Range, CountsUpAndDownAndRefusesInvalidSteps) {
  const Op op = WithSlots("range", {"Start", "End", "Step"}, {"Out"});
  const auto inputs = [](float start, float end, float step) {
    return Tensors{{"Start", TensorOf<float>({1}, {start})},
                   {"End", TensorOf<float>({1}, {end})},
                   {"Step", TensorOf<float>({1}, {step})}};
  };
  ExpectValues(RunOne(op, inputs(0, 1, 0.25f), "Out"), {0, 0.25, 0.5, 0.75});
  ExpectValues(RunOne(op, inputs(5, 0, -2), "Out"), {5, 3, 1});
  ExpectError(op, inputs(0, 1, 0),
              "range: from Start (0) to End (1) by Step (0) are inf numbers; there must be from 0 to 2^31");
  ExpectError(op, inputs(0, 1, -1),
              "range: from Start (0) to End (1) by Step (-1) are -1 numbers; there must be from 0 to 2^31");
  const auto whole = [](std::int32_t value) { return TensorOf<std::int32_t>({1}, {value}); };
  constexpr std::int32_t kLeast = std::numeric_limits<std::int32_t>::min();
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  ExpectValues(RunOne(op, {{"Start", whole(kLeast)}, {"End", whole(kMost)}, {"Step", whole(kMost)}}, "Out"),
               {static_cast<double>(kLeast), -1, static_cast<double>(kMost) - 1});
}

TEST(Gather, RefusesARowOutOfRange) {
  const Op op = WithSlots("gather", {"X", "Index"}, {"Out"});
  const Tensor x = Ramp(DType::kFp32, {3, 2}, 0, 1);
  for (const std::int64_t at : {std::int64_t{3}, std::int64_t{-1}}) {
    ExpectError(op, {{"X", x}, {"Index", TensorOf<std::int64_t>({2}, {0, at})}},
                StrCat("gather: index ", at, " is outside of X, which has 3 rows"));
  }
  const Op grad = WithSlots("gather_grad", {"X", "Index", "Out@GRAD"}, {"X@GRAD"});
  ExpectError(
      grad,
      {{"X", x}, {"Index", TensorOf<std::int32_t>({1}, {9})}, {"Out@GRAD", Tensor(DType::kFp32, {1, 2})}},
      "gather_grad: index 9 is outside of X, which has 3 rows");
  EXPECT_EQ(RunOne(op, {{"X", x}, {"Index", Tensor(DType::kInt64, {0})}}, "Out").shape(), (Shape{0, 2}));
}

TEST(FillConstant, RefusesAValueThatItsTypeCannotHold) {
  Op op = Op("fill_constant").AddOutput("Out", {"Out"}).Set("shape", std::vector<std::int64_t>{1});
  op.Set("dtype", static_cast<std::int32_t>(DType::kInt32)).Set("value", 1e10f);
  ExpectError(op, {}, "fill_constant: attribute value (1e+10) must be a number that fits i32");
}

TEST(HardSwish, UsesItsThresholdAndOffset) {
  const Op op = WithSlots("hard_swish", {"X"}, {"Out"}).Set("threshold", 4.0f).Set("offset", 2.0f);
  ExpectValues(RunOne(op, {{"X", TensorOf<float>({3}, {-3, 1, 6})}}, "Out"), {0, 0.5, 4});
}

TEST(HierarchicalSigmoid, RefusesLabelsAndNodesOutOfRange) {
  Op op = WithSlots("hierarchical_sigmoid", {"X", "W", "Label"}, {"Out", "PreOut"}).Set("num_classes", 3);
  Tensors inputs = {{"X", Ramp(DType::kFp32, {1, 2}, 0, 1)},
                    {"W", Ramp(DType::kFp32, {2, 2}, 0, 1)},
                    {"Label", TensorOf<std::int64_t>({1, 1}, {3})}};
  ExpectError(op, inputs, "hierarchical_sigmoid: label 3 must be in [0, 3)");
  op.AddInput("PathTable", {"t"}).AddInput("PathCode", {"t"});
  inputs["t"] = TensorOf<std::int64_t>({1, 2}, {0, 2});
  ExpectError(op, inputs, "hierarchical_sigmoid: node 2 is outside of W, which has 2 rows");
}

// With all scores at 0, each decision has probability 1/2.
TEST(HierarchicalSigmoid, ProbabilitiesOfAllClassesAddUpToOne) {
  const Op op =
      WithSlots("hierarchical_sigmoid", {"X", "W", "Label"}, {"Out", "PreOut"}).Set("num_classes", 4);
  double sum = 0;
  for (std::int64_t label = 0; label < 4; ++label) {
    const Tensor loss = RunOne(op,
                               {{"X", Values({1, 3})},
                                {"W", Values({3, 3}, -1, 1, 2)},
                                {"Label", TensorOf<std::int64_t>({1, 1}, {label})}},
                               "Out");
    sum += std::exp(-ElementAt(loss, 0));
  }
  EXPECT_NEAR(sum, 1, 1e-12);
}

Op NceOp(int sampler) {
  Op op = WithSlots("nce", {"Input", "Label", "Weight"}, {"Cost", "SampleLogits", "SampleLabels"});
  return op.Set("num_total_classes", 20).Set("num_neg_samples", 400).Set("seed", 3).Set("sampler", sampler);
}

Tensors NceInputs(std::int64_t label) {
  return {{"Input", Values({5, 2})},
          {"Weight", Values({20, 2})},
          {"Label", TensorOf<std::int64_t>({5, 1}, {0, 1, 2, 3, label})}};
}

TEST(Nce, DrawsAreReproducibleAndFollowTheDistribution) {
  for (const int sampler : {0, 1}) {
    const Tensor drawn = RunOne(NceOp(sampler), NceInputs(4), "SampleLabels");
    EXPECT_EQ(Near(drawn, RunOne(NceOp(sampler), NceInputs(4), "SampleLabels"), 0, 0).ToString(), "ok");
    double first = 0;
    for (std::int64_t i = 0; i < drawn.count(); ++i) first += i % 401 > 0 && ElementAt(drawn, i) == 0 ? 1 : 0;
    const double expected = 2000 * (sampler == 0 ? 1 / 20.0 : std::log(2) / std::log(20));
    EXPECT_NEAR(first, expected, 4 * std::sqrt(expected)) << sampler;
  }
}

TEST(Nce, RefusesAClassOutOfRange) {
  ExpectError(NceOp(0), NceInputs(20), "nce: class 20 must be in [0, 20)");
}

Op AucOp(int steps) {
  Op op = Op("auc").AddInput("Predict", {"p"}).AddInput("Label", {"l"});
  op.AddInput("StatPos", {"pos"}).AddInput("StatNeg", {"neg"});
  op.AddOutput("AUC", {"auc"}).AddOutput("StatPosOut", {"pos"}).AddOutput("StatNegOut", {"neg"});
  return op.Set("num_thresholds", 10).Set("slide_steps", steps);
}

// Scores of four examples: the positive ones are above the negative ones in 3 of 4 pairs.
TEST(Auc, IsTheFractionOfCorrectlyOrderedPairs) {
  const Tensor scores = TensorOf<float>({4, 2}, {0.9f, 0.1f, 0.55f, 0.45f, 0.65f, 0.35f, 0.15f, 0.85f});
  const Tensor labels = TensorOf<std::int64_t>({4, 1}, {0, 0, 1, 1});
  const auto zeros = [](Dim count) { return Ramp(DType::kInt64, {count}, 0, 0); };
  const Result<Tensors> all =
      RunOp(AllOps(), AucOp(0), {{"p", scores}, {"l", labels}, {"pos", zeros(11)}, {"neg", zeros(11)}});
  ASSERT_TRUE(all.ok()) << all.status().ToString();
  ExpectValues(all->at("auc"), {0.75});
  Tensors state = {{"p", scores}, {"l", labels}, {"pos", zeros(23)}, {"neg", zeros(23)}};
  for (int batch = 1; batch <= 3; ++batch) {
    const Result<Tensors> last = RunOp(AllOps(), AucOp(1), state);
    ASSERT_TRUE(last.ok()) << last.status().ToString();
    ExpectValues(last->at("auc"), {0.75});
    state["pos"] = last->at("pos");
    state["neg"] = last->at("neg");
    EXPECT_EQ(ElementAt(state["pos"], 22), batch);
    EXPECT_EQ(ElementAt(state["pos"], 11 + 8), 1);  // one batch's counts, not the sum of all
  }
}

// In descending order of scores, the labels are 1, 1, 0, 0; those at 0.85 and 0.65 are found with precision
// 1. Then a label 0 with score 0.9 is added on top.
TEST(Auc, PrecisionRecallAreaAveragesPrecisionAtPositives) {
  const auto area = [](float top) {
    const Tensors inputs = {{"p", TensorOf<float>({4, 1}, {top, 0.85f, 0.65f, 0.1f})},
                            {"l", TensorOf<std::int64_t>({4, 1}, {0, 1, 1, 0})},
                            {"pos", Ramp(DType::kInt64, {11}, 0, 0)},
                            {"neg", Ramp(DType::kInt64, {11}, 0, 0)}};
    return ElementAt(RunOne(AucOp(0).Set("curve", "PR"), inputs, "auc"), 0);
  };
  EXPECT_DOUBLE_EQ(area(0.45f), 1);
  EXPECT_DOUBLE_EQ(area(0.95f), (1.0 / 2 + 2.0 / 3) / 2);
}

TEST(Auc, RefusesInvalidProbabilities) {
  const Tensors inputs = {{"p", TensorOf<float>({1, 1}, {1.5f})},
                          {"l", TensorOf<std::int64_t>({1, 1}, {1})},
                          {"pos", Ramp(DType::kInt64, {11}, 0, 0)},
                          {"neg", Ramp(DType::kInt64, {11}, 0, 0)}};
  ExpectError(AucOp(0), inputs,
              "auc: the score of row 0 (1.5) must be in [0, 1]: Predict (p) holds probabilities");
}

TEST(ProximalGd, AppliesL1AndL2Shrinkage) {
  Op op = Op("proximal_gd").AddInput("Param", {"p"}).AddInput("Grad", {"g"}).AddInput("LearningRate", {"r"});
  op.AddOutput("ParamOut", {"p"}).Set("l1", 1.0f).Set("l2", 2.0f);
  const Tensors inputs = {{"p", TensorOf<float>({3}, {3, -3, 0.25f})},
                          {"g", TensorOf<float>({3}, {2, 2, 0})},
                          {"r", TensorOf<float>({1}, {0.5f})}};
  ExpectValues(RunOne(op, inputs, "p"), {0.75, -1.75, 0});
}

TEST(AverageAccumulates, StartsANewWindowWhenOneIsFull) {
  Op op = Op("average_accumulates").AddInput("param", {"p"});
  Tensors state = {{"p", TensorOf<float>({1}, {2})}};
  for (const char* name :
       {"sum_1", "sum_2", "sum_3", "num_accumulates", "old_num_accumulates", "num_updates"}) {
    op.AddInput(StrCat("in_", name), {name}).AddOutput(StrCat("out_", name), {name});
    state[name] = Ramp(StartsWith(name, "sum") ? DType::kFp32 : DType::kInt64, {1}, 0, 0);
  }
  op.Set("average_window", 0.5f)
      .Set("max_average_window", std::int64_t{4})
      .Set("min_average_window", std::int64_t{2});
  const auto step = [&] {
    const Result<Tensors> out = RunOp(AllOps(), op, state);
    PENSTOCK_CHECK(out.ok(), out.status().ToString());
    for (const auto& [name, tensor] : *out) state[name] = tensor;
  };
  step();
  ExpectValues(state["sum_1"], {2});
  step();  // two values fill min_average_window
  ExpectValues(state["sum_1"], {0});
  ExpectValues(state["sum_3"], {4});
  ExpectValues(state["old_num_accumulates"], {2});
  step();
  ExpectValues(state["sum_1"], {2});
  ExpectValues(state["num_accumulates"], {1});
  ExpectValues(state["num_updates"], {3});
}

}  // namespace
}  // namespace penstock::test
