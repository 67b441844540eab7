// Values of optimizer updates for which the corpus has no case.
#include <gtest/gtest.h>

#include <cmath>

#include "operators/all_ops.h"
#include "tests/support/op_harness.h"

namespace penstock::test {
namespace {

// AvgSquaredGradOut 4; a step of 2 by the old average of 16, and a new average of 10.
TEST(Adadelta, UsesTheAverageBeforeItsUpdate) {
  const auto op = [](const std::string& average_out) {
    return Op("adadelta")
        .AddInput("Param", {"p"})
        .AddInput("Grad", {"g"})
        .AddInput("AvgSquaredGrad", {"grads"})
        .AddInput("AvgSquaredUpdate", {"steps"})
        .AddOutput("ParamOut", {"p"})
        .AddOutput("AvgSquaredGradOut", {"grads"})
        .AddOutput("AvgSquaredUpdateOut", {average_out})
        .Set("rho", 0.5f)
        .Set("epsilon", 0.0f);
  };
  const auto one = [](float value) { return TensorOf<float>({1}, {value}); };
  const Tensors inputs = {{"p", one(5)}, {"g", one(1)}, {"grads", one(7)}, {"steps", one(16)}};
  for (const char* average_out : {"steps", "apart"}) {
    const Result<Tensors> made = RunOp(AllOps(), op(average_out), inputs);
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    EXPECT_FLOAT_EQ(made->at("grads").Span<float>()[0], 4);
    EXPECT_FLOAT_EQ(made->at(average_out).Span<float>()[0], 10);
    const float step = std::string(average_out) == "apart" ? 2.0f : std::sqrt(10.0f / 4.0f);
    EXPECT_FLOAT_EQ(made->at("p").Span<float>()[0], 5 - step) << average_out;
  }
}

// A rate of 0.1 * sqrt(1 - 0.75) / (1 - 0.5) = 0.1, a step of rate * 2 / (sqrt(9) + 1).
TEST(Adam, AddsUnscaledEpsilonToTheRoot) {
  Op op("adam");
  for (const char* slot : {"Param", "Grad", "LearningRate", "Moment1", "Moment2", "Beta1Pow", "Beta2Pow"})
    op.AddInput(slot, {slot});
  for (const char* slot : {"Param", "Moment1", "Moment2", "Beta1Pow", "Beta2Pow"})
    op.AddOutput(StrCat(slot, "Out"), {slot});
  op.Set("beta1", 0.5f).Set("beta2", 0.5f).Set("epsilon", 1.0f);
  const auto one = [](float value) { return TensorOf<float>({1}, {value}); };
  const Result<Tensors> made = RunOp(AllOps(), op,
                                     {{"Param", one(5)},
                                      {"Grad", one(4)},
                                      {"LearningRate", one(0.1f)},
                                      {"Moment1", one(0)},
                                      {"Moment2", one(2)},
                                      {"Beta1Pow", one(0.5f)},
                                      {"Beta2Pow", one(0.75f)}});
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  EXPECT_FLOAT_EQ(made->at("Param").Span<float>()[0], 4.95f);
}

// |Param| = 5 and |Grad| = 10: a rate of 0.5 * 5 / 10.
TEST(LarsMomentum, ScalesStepsWithoutWeightDecay) {
  Op op("lars_momentum");
  for (const char* slot : {"Param", "Grad", "LearningRate", "Velocity"}) op.AddInput(slot, {slot});
  for (const char* slot : {"Param", "Velocity"}) op.AddOutput(StrCat(slot, "Out"), {slot});
  op.Set("mu", 0.0f).Set("lars_coeff", 0.5f).Set("lars_weight_decay", 0.0f);
  const Result<Tensors> made = RunOp(AllOps(), op,
                                     {{"Param", TensorOf<float>({2}, {3, 4})},
                                      {"Grad", TensorOf<float>({2}, {6, 8})},
                                      {"LearningRate", TensorOf<float>({1}, {1})},
                                      {"Velocity", TensorOf<float>({2}, {1, 1})}});
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  EXPECT_FLOAT_EQ(made->at("Param").Span<float>()[0], 1.5f);
  EXPECT_FLOAT_EQ(made->at("Param").Span<float>()[1], 2);
}

// Gradients of zero ranks have no mean.
TEST(DgcMomentum, RefusesZeroRanks) {
  Op op("dgc_momentum");
  Tensors inputs;
  for (const char* slot : {"Param", "Grad", "Velocity", "LearningRate", "current_step", "nranks"}) {
    op.AddInput(slot, {slot});
    inputs[slot] = TensorOf<float>({1}, {0});
  }
  for (const char* slot : {"Param", "Velocity"}) op.AddOutput(StrCat(slot, "Out"), {slot});
  op.Set("mu", 0.5f).Set("rampup_begin_step", 0.0f);
  EXPECT_EQ(RunOp(AllOps(), op, inputs).status().message(),
            "dgc_momentum: nranks is 0; it must be at least 1");
}

TEST(AverageAccumulates, RefusesNegativeCounts) {
  Op op("average_accumulates");
  Tensors inputs;
  for (const char* slot : {"param", "in_sum_1", "in_sum_2", "in_sum_3"}) {
    op.AddInput(slot, {slot});
    inputs[slot] = TensorOf<float>({1}, {1});
  }
  for (const char* slot : {"in_num_accumulates", "in_old_num_accumulates", "in_num_updates"}) {
    op.AddInput(slot, {slot});
    inputs[slot] = TensorOf<std::int64_t>({1}, {-1});
  }
  for (const char* slot : {"out_sum_1", "out_sum_2", "out_sum_3", "out_num_accumulates",
                           "out_old_num_accumulates", "out_num_updates"})
    op.AddOutput(slot, {slot});
  op.Set("max_average_window", std::int64_t{4}).Set("min_average_window", std::int64_t{2});
  EXPECT_EQ(RunOp(AllOps(), op, inputs).status().message(), "average_accumulates: a count of steps is -1");
}

}  // namespace
}  // namespace penstock::test
