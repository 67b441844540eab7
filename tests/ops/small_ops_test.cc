// Values of small ops for which the corpus has no case, compared with hand-computed ones.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "operators/all_ops.h"
#include "tests/ops/gradient_case.h"
#include "tests/ops/run_one.h"

namespace penstock::test {
namespace {

// Classes chosen 0, 2, 1, 1 of labels 0, 1, 1, 0: class 0 TP 1 FN 1 TN 2, class 1 TP 1 FP 1 FN 1 TN 1, class
// 2 FP 1 TN 3. Class 2 has no labels, so its recall counts as 1.
TEST(PrecisionRecall, CountsOverBatches) {
  const Op op = WithSlots("precision_recall", {"MaxProbs", "Indices", "Labels", "StatesInfo"},
                          {"BatchMetrics", "AccumMetrics", "AccumStatesInfo"})
                    .Set("class_number", 3);
  Tensors inputs = {{"MaxProbs", TensorOf<double>({4, 1}, {1, 1, 1, 1})},
                    {"Indices", TensorOf<std::int32_t>({4, 1}, {0, 2, 1, 1})},
                    {"Labels", TensorOf<std::int32_t>({4, 1}, {0, 1, 1, 0})},
                    {"StatesInfo", TensorOf<double>({3, 4}, {1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0})}};
  const double macro_precision = (1 + 0.5 + 0) / 3, macro_recall = (0.5 + 0.5 + 1) / 3;
  ExpectValues(RunOne(op, inputs, "BatchMetrics"),
               {macro_precision, macro_recall,
                2 * macro_precision * macro_recall / (macro_precision + macro_recall), 0.5, 0.5, 0.5});
  ExpectValues(RunOne(op, inputs, "AccumStatesInfo"), {2, 0, 2, 1, 1, 1, 2, 1, 0, 1, 4, 0});
  const double all_recall = (2.0 / 3 + 0.5 + 1) / 3;
  ExpectValues(RunOne(op, inputs, "AccumMetrics"),
               {0.5, all_recall, 2 * 0.5 * all_recall / (0.5 + all_recall), 0.6, 0.6, 0.6});
  inputs["Labels"] = TensorOf<std::int32_t>({4, 1}, {0, 3, 1, 0});
  ExpectError(op, inputs, "precision_recall: class 3 is not one of 3");
}

TEST(Sum, RefusesAnUnknownArgument) {
  Op op("sum");
  op.AddInput("X", {"@EMPTY@", "X"}).AddOutput("Out", {"Out"});
  EXPECT_EQ(ErrorOf(op, {{"X", TensorOf<float>({2}, {1, 2})}}), "sum: X[0] names no variable");
}
TEST(Addmm, OutputMayBeOmitted) {
  const Op op = Reads(Op("addmm"), {"X", "Y", "Input"}, {});
  const Tensor matrix = TensorOf<float>({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(
      ErrorOf(op, {{"X", matrix}, {"Y", matrix}, {"Input", TensorOf<float>({3, 2}, {1, 2, 3, 4, 5, 6})}}),
      "addmm: extent 0 of Input ([3, 2]) must be 1 or 2, that of X . Y");
}

TEST(EqualReduce, ComparesAllElements) {
  const Op op = WithSlots("equal_reduce", {"X", "Y"}, {"Out"});
  const auto equal = [&op](double last) {
    return *RunOne(op,
                   {{"X", TensorOf<double>({2, 2}, {1, 2, 1, last})}, {"Y", TensorOf<double>({2}, {1, 2})}},
                   "Out")
                .Data<bool>();
  };
  EXPECT_TRUE(equal(2));
  EXPECT_TRUE(equal(2 + 1e-9));
  EXPECT_FALSE(equal(2.1));
  EXPECT_FALSE(equal(std::numeric_limits<double>::quiet_NaN()));
}

TEST(ModifiedHuberLoss, IsLinearThenQuadraticThenZero) {
  const Op op = WithSlots("modified_huber_loss", {"X", "Y"}, {"IntermediateVal", "Out"});
  Tensors inputs = {{"X", TensorOf<float>({4}, {-2, 2, 0.5f, 3})}, {"Y", TensorOf<float>({4}, {1, 0, 1, 1})}};
  ExpectValues(RunOne(op, inputs, "Out"), {8, 8, 0.25, 0});
  inputs["Y"] = TensorOf<float>({4}, {1, 0, 0.5f, 1});
  ExpectError(op, inputs, "modified_huber_loss: Y holds 0.5; labels are 0 and 1");
}

TEST(Fill, ConvertsItsElements) {
  Op op = WithSlots("fill", {}, {"Out"}).Set("shape", std::vector<std::int32_t>{3}).Set("dtype", 2);
  ExpectValues(RunOne(Op(op).Set("value", std::vector<float>{1.9f, -2, 7}), {}, "Out"), {1, -2, 7});
  ExpectError(Op(op).Set("value", std::vector<float>{1, 3e9f, 7}), {},
              "fill: value (3e+09) is not a valid i32");
}

TEST(Seed, UsesTheAttributeOrARandomSeed) {
  const Op op = WithSlots("seed", {}, {"Out"});
  EXPECT_EQ(*RunOne(Op(op).Set("seed", 123), {}, "Out").Data<std::int32_t>(), 123);
  EXPECT_NE(*RunOne(op, {}, "Out").Data<std::int32_t>(), 0);
}

TEST(L1Norm, IsTheSumOfAbsoluteValues) {
  ExpectValues(
      RunOne(WithSlots("l1_norm", {"X"}, {"Out"}), {{"X", TensorOf<float>({3}, {1, -2.5f, 0})}}, "Out"),
      {3.5});
}

TEST(FakeQuantize, RoundsToBinsOfTheLargestValue) {
  const Tensor x = TensorOf<float>({2, 2}, {0.5f, -2, 1, 0.26f});
  const Op all = WithSlots("fake_quantize_abs_max", {"X"}, {"Out", "OutScale"}).Set("bit_length", 3);
  ExpectValues(RunOne(all, {{"X", x}}, "OutScale"), {2});
  ExpectValues(RunOne(all, {{"X", x}}, "Out"), {1, -3, 2, 0});
  const Op rows =
      WithSlots("fake_channel_wise_quantize_abs_max", {"X"}, {"Out", "OutScale"}).Set("bit_length", 3);
  ExpectValues(RunOne(rows, {{"X", x}}, "OutScale"), {2, 1});
  ExpectValues(RunOne(rows, {{"X", x}}, "Out"), {1, -3, 3, 1});
}

TEST(FakeQuantize, TakesAMovingAverageOfScales) {
  const std::vector<std::string> ins = {"X", "InScale", "InAccum", "InState"};
  const std::vector<std::string> outs = {"Out", "OutScale", "OutState", "OutAccum"};
  const Tensors inputs = {{"X", TensorOf<float>({2}, {3, -1})},
                          {"InScale", TensorOf<float>({1}, {2})},
                          {"InAccum", TensorOf<float>({1}, {1})},
                          {"InState", TensorOf<float>({1}, {2})}};
  // State 0.5 * 2 + 1 = 2, sum 0.5 * 1 + 3 = 3.5, so the scale is 1.75, which clips 3.
  const Op there = WithSlots("fake_quantize_moving_average_abs_max", ins, outs)
                       .Set("bit_length", 3)
                       .Set("moving_rate", 0.5f);
  ExpectValues(RunOne(there, inputs, "OutScale"), {1.75});
  ExpectValues(RunOne(there, inputs, "Out"), {3, -2});
  const Op back = WithSlots("fake_quantize_dequantize_moving_average_abs_max", ins, outs)
                      .Set("bit_length", 3)
                      .Set("moving_rate", 0.5f);
  ExpectValues(RunOne(back, inputs, "Out"), {1.75, -2 * 1.75 / 3});
  ExpectValues(RunOne(Op(back).Set("is_test", true), inputs, "Out"), {2, -2 * 2.0 / 3});
}

TEST(FakeQuantize, TakesTheMaximumOverAWindow) {
  const Op op =
      WithSlots("fake_quantize_range_abs_max", {"X", "InScale", "Iter"}, {"Out", "OutScale", "OutScales"})
          .Set("window_size", 2);
  Tensors inputs = {{"X", TensorOf<float>({2}, {3, -1})},
                    {"InScale", TensorOf<float>({1}, {5})},
                    {"Iter", TensorOf<std::int64_t>({1}, {0})}};
  ExpectValues(RunOne(op, inputs, "OutScale"), {5});
  ExpectValues(RunOne(op, inputs, "OutScales"), {3, 0});
  ExpectValues(RunOne(Op(op).Set("is_test", true), inputs, "Out"), {76, -25});
}

TEST(Dequantize, DividesByTheRange) {
  const Op channels = WithSlots("fake_channel_wise_dequantize_max_abs", {"X"}, {"Out"})
                          .AddInput("Scales", {"a", "b"})
                          .Set("quant_bits", std::vector<std::int32_t>{3, 2});
  ExpectValues(RunOne(channels,
                      {{"X", TensorOf<float>({1, 2, 2}, {1, 2, 3, 4})},
                       {"a", TensorOf<float>({2}, {3, 6})},
                       {"b", TensorOf<float>({1}, {2})}},
                      "Out"),
               {2, 4, 12, 16});
  Tensor dict = Ramp(DType::kFp32, {128}, 0, 1);
  ExpectValues(RunOne(WithSlots("dequantize_log", {"X", "Dict"}, {"Out"}),
                      {{"X", TensorOf<std::int8_t>({3}, {5, -128, -1})}, {"Dict", dict}}, "Out"),
               {5, 0, -127});
}

TEST(Dequantize, TakesBytes) {
  const Op op = WithSlots("dequantize_abs_max", {"X", "Scale"}, {"Out"}).Set("max_range", 100.0f);
  const Tensors inputs = {{"X", TensorOf<std::int8_t>({3}, {50, -128, 0})},
                          {"Scale", TensorOf<float>({1}, {3})}};
  ExpectValues(RunOne(op, inputs, "Out"), {1.5, -3.84, 0});
}

// Y's middle tap takes the element itself, its first one the element before, around the end.
TEST(ConvShift, IsCircular) {
  const Op op = WithSlots("conv_shift", {"X", "Y"}, {"Out"});
  const Tensors inputs = {{"X", TensorOf<float>({2, 4}, {1, 2, 3, 4, 1, 0, 0, 0})},
                          {"Y", TensorOf<float>({2, 3}, {1, 10, 100, 5, 6, 7})}};
  ExpectValues(RunOne(op, inputs, "Out"), {214, 321, 432, 143, 6, 5, 0, 7});
}

TEST(Minus, IsTheDifference) {
  const Tensors inputs = {{"X", TensorOf<float>({2}, {1, 2})}, {"Y", TensorOf<float>({2}, {5, 0.5f})}};
  ExpectValues(RunOne(WithSlots("minus", {"X", "Y"}, {"Out"}), inputs, "Out"), {-4, 1.5});
}

TEST(Norms, CoverVectorsAndMatrices) {
  const Tensors inputs = {{"X", TensorOf<float>({2, 2}, {3, -4, 0, 2})}};
  ExpectValues(RunOne(WithSlots("p_norm", {"X"}, {"Out"}), inputs, "Out"), {5, 2});
  ExpectValues(RunOne(WithSlots("p_norm", {"X"}, {"Out"}).Set("porder", 1.0f).Set("axis", 0), inputs, "Out"),
               {3, 6});
  const Op all = WithSlots("frobenius_norm", {"X"}, {"Out"}).Set("dim", std::vector<std::int32_t>{0, 1});
  ExpectValues(RunOne(all, inputs, "Out"), {std::sqrt(29.0)});
}

// A wrong probability of 0 or 1 has loss 100.
TEST(BceLoss, ClampsLogarithms) {
  const Tensors inputs = {{"X", TensorOf<double>({4}, {0.25, 0, 1, 0.5})},
                          {"Label", TensorOf<double>({4}, {1, 1, 0, 0.5})}};
  ExpectValues(RunOne(WithSlots("bce_loss", {"X", "Label"}, {"Out"}), inputs, "Out"),
               {std::log(4.0), 100, 100, std::log(2.0)});
}

TEST(ProximalAdagrad, ScalesThenShrinks) {
  Op op =
      Op("proximal_adagrad").AddInput("Param", {"p"}).AddInput("Grad", {"g"}).AddInput("LearningRate", {"r"});
  op.AddInput("Moment", {"m"}).AddOutput("ParamOut", {"p"}).AddOutput("MomentOut", {"m"});
  op.Set("l1", 1.0f).Set("l2", 2.0f);
  const Tensors inputs = {{"p", TensorOf<float>({3}, {3, -3, 0.25f})},
                          {"g", TensorOf<float>({3}, {4, 4, 0})},
                          {"m", TensorOf<float>({3}, {9, 0, 0})},
                          {"r", TensorOf<float>({1}, {0.5f})}};
  // Steps to 3 - 0.5 * 4 / 5, to -3 - 0.5, and none; then 0.5 nearer to 0 and halved.
  ExpectValues(RunOne(op, inputs, "p"), {1.05, -1.5, 0});
  ExpectValues(RunOne(op, inputs, "m"), {25, 16, 0});
}

TEST(NllLoss, SkipsIgnoredLabelsAndAppliesWeights) {
  const Op op = WithSlots("nll_loss", {"X", "Label", "Weight"}, {"Out", "Total_weight"});
  Tensors inputs = {{"X", TensorOf<float>({3, 2}, {-1, -2, -3, -4, -5, -6})},
                    {"Label", TensorOf<std::int64_t>({3}, {1, -100, 0})},
                    {"Weight", TensorOf<float>({2}, {3, 1})}};
  ExpectValues(RunOne(Op(op).Set("reduction", "none"), inputs, "Out"), {2, 0, 15});
  ExpectValues(RunOne(Op(op).Set("reduction", "sum"), inputs, "Out"), {17});
  ExpectValues(RunOne(op, inputs, "Out"), {17.0 / 4});
  ExpectValues(RunOne(op, inputs, "Total_weight"), {4});
  inputs["Label"] = TensorOf<std::int64_t>({3}, {1, 2, 0});
  ExpectError(op, inputs, "nll_loss: label 2 of element 1 must be in [0, 2) or -100, the ignore_index");
}

// Of the pairs of query 7 (rows 0, 2 and 3), one is right, one is wrong, and one has equal scores, which
// counts as wrong.
TEST(PositiveNegativePair, CountsPairsWithinAQuery) {
  const Op op = WithSlots("positive_negative_pair", {"Score", "Label", "QueryID"},
                          {"PositivePair", "NegativePair", "NeutralPair"});
  Tensors inputs = {{"Score", TensorOf<float>({4, 1}, {0.1f, 9, 0.5f, 0.5f})},
                    {"Label", TensorOf<float>({4, 1}, {1, 0, 3, 0})},
                    {"QueryID", TensorOf<std::int64_t>({4, 1}, {7, 8, 7, 7})}};
  ExpectValues(RunOne(op, inputs, "PositivePair"), {1});
  ExpectValues(RunOne(op, inputs, "NegativePair"), {2});
  ExpectValues(RunOne(op, inputs, "NeutralPair"), {1});
  Op more = op;
  more.AddInput("Weight", {"Weight"});
  for (const char* count : {"Positive", "Negative", "Neutral"}) {
    more.AddInput(StrCat("Accumulate", count, "Pair"), {count});
    inputs[count] = TensorOf<float>({1}, {10});
  }
  inputs["Weight"] = TensorOf<float>({4, 1}, {1, 5, 2, 4});
  ExpectValues(RunOne(more, inputs, "PositivePair"), {11.5});
  ExpectValues(RunOne(more, inputs, "NegativePair"), {15.5});
  ExpectValues(RunOne(more, inputs, "NeutralPair"), {13});
}

TEST(Unpool, PutsElementsBack) {
  const Op op = WithSlots("unpool", {"X", "Indices"}, {"Out"})
                    .Set("ksize", std::vector<std::int32_t>{2, 2})
                    .Set("strides", std::vector<std::int32_t>{2, 2})
                    .Set("unpooling_type", "max");
  Tensors inputs = {{"X", TensorOf<float>({1, 2, 1, 1}, {5, 6})},
                    {"Indices", TensorOf<std::int32_t>({1, 2, 1, 1}, {3, 0})}};
  ExpectValues(RunOne(op, inputs, "Out"), {0, 0, 0, 5, 6, 0, 0, 0});
  inputs["Indices"] = TensorOf<std::int32_t>({1, 2, 1, 1}, {3, 4});
  ExpectError(op, inputs, "unpool: index 4 of element 1 must be in [0, 4)");
}

// Of three columns in two windows of two, the first window begins one column before the first.
TEST(Spp, PoolsEachPyramidLevel) {
  const Op op = WithSlots("spp", {"X"}, {"Out"}).Set("pyramid_height", 2);
  const Tensors inputs = {{"X", TensorOf<float>({1, 1, 2, 3}, {1, 2, 3, 4, 5, 6})}};
  ExpectValues(RunOne(Op(op).Set("pooling_type", "max"), inputs, "Out"), {6, 1, 3, 4, 6});
  ExpectValues(RunOne(Op(op).Set("pooling_type", "avg"), inputs, "Out"), {3.5, 1, 2.5, 4, 5.5});
}

}  // namespace
}  // namespace penstock::test
