#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "operators/all_ops.h"
#include "tests/unit/operators/kernel_check.h"

namespace penstock {
namespace {

using test::BatchNormOp;
using test::CheckKernels;
using test::Near;
using test::Scattered;
using test::Tensors;

// --- batch_norm ---

Tensors BatchNormInputs(const Shape& x, Dim channels) {
  return {{"x", Scattered(DType::kFp64, x, -2, 3, 1)},
          {"scale", Scattered(DType::kFp64, {channels}, 0.5, 2, 2)},
          {"bias", Scattered(DType::kFp64, {channels}, -1, 1, 3)},
          {"mean", Scattered(DType::kFp64, {channels}, -1, 1, 4)},
          {"variance", Scattered(DType::kFp64, {channels}, 0.5, 2, 5)}};
}

const test::GradientCheck kNormGrads = {.of = {"y"}, .wanted = {"x", "scale", "bias"}};

TEST(BatchNorm, KernelsAgreeAndMatchDifferences) {
  for (const Shape& x : {Shape{4, 3, 2, 3}, Shape{5, 3}, Shape{2, 3, 4}}) {
    EXPECT_EQ(CheckKernels(AllOps(), BatchNormOp(), BatchNormInputs(x, 3), kNormGrads).ToString(), "ok")
        << x.ToString();
  }
  const Op last = BatchNormOp().Set("data_layout", "NHWC");
  EXPECT_EQ(CheckKernels(AllOps(), last, BatchNormInputs({2, 3, 2, 4}, 4), kNormGrads).ToString(), "ok");
  const Op global = BatchNormOp().Set("use_global_stats", true);
  EXPECT_EQ(CheckKernels(AllOps(), global, BatchNormInputs({4, 3, 2, 3}, 3), kNormGrads).ToString(), "ok");
}

TEST(BatchNorm, MovesTheRunningMomentsAndSavesTheInverseDeviation) {
  const Tensor x = test::TensorOf<float>({4, 1}, {1, 3, 5, 7});  // mean 4, biased variance 5
  const Tensor one = test::TensorOf<float>({1}, {1}), zero = test::TensorOf<float>({1}, {0});
  const auto out = test::RunOp(AllOps(), BatchNormOp().Set("momentum", 0.75f),
                               {{"x", x}, {"scale", one}, {"bias", zero}, {"mean", zero}, {"variance", one}});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_FLOAT_EQ(test::ElementAt(out->at("mean"), 0), 1.0f);
  EXPECT_FLOAT_EQ(test::ElementAt(out->at("variance"), 0), 2.0f);
  EXPECT_FLOAT_EQ(test::ElementAt(out->at("saved_mean"), 0), 4.0f);
  EXPECT_NEAR(test::ElementAt(out->at("saved_variance"), 0), 1.0 / std::sqrt(5.00001), 1e-6);
}

TEST(BatchNorm, TestModeUsesAndKeepsTheRunningMoments) {
  const Tensor x = test::TensorOf<float>({2, 1}, {1, 5});
  const auto out = test::RunOp(AllOps(), BatchNormOp().Set("is_test", true).Set("epsilon", 0.0f),
                               {{"x", x},
                                {"scale", test::TensorOf<float>({1}, {3})},
                                {"bias", test::TensorOf<float>({1}, {1})},
                                {"mean", test::TensorOf<float>({1}, {1})},
                                {"variance", test::TensorOf<float>({1}, {4})}});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_EQ(Near(out->at("y"), test::TensorOf<float>({2, 1}, {1, 7}), 1e-6, 0).ToString(), "ok");
  EXPECT_EQ(test::ElementAt(out->at("mean"), 0), 1.0);
  EXPECT_EQ(test::ElementAt(out->at("variance"), 0), 4.0);
}

TEST(BatchNorm, OneElementPerChannelPassesUnchanged) {
  const auto out =
      test::RunOp(AllOps(), BatchNormOp(), test::Converted(BatchNormInputs({1, 3}, 3), DType::kFp32));
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_EQ(
      Near(out->at("y"), test::Converted(BatchNormInputs({1, 3}, 3), DType::kFp32).at("x"), 0, 0).ToString(),
      "ok");
}

TEST(BatchNorm, ChannelCountsMustAgree) {
  const TensorDesc three = {.shape = {3}}, four = {.shape = {4}};
  const auto shapes = test::InferOp(AllOps(), BatchNormOp(),
                                    {{"x", {.shape = {-1, 3, 8, 8}}},
                                     {"scale", four},
                                     {"bias", three},
                                     {"mean", three},
                                     {"variance", three}});
  ASSERT_FALSE(shapes.ok());
  EXPECT_EQ(shapes.status().message(), "batch_norm: shape of Scale ([4]) must be [3], the channels of X");
}

// --- layer_norm ---

Op LayerNormOp(int begin_norm_axis) {
  return Op("layer_norm")
      .AddInput("X", {"x"})
      .AddOutput("Y", {"y"})
      .AddOutput("Mean", {"mean"})
      .AddOutput("Variance", {"variance"})
      .Set("begin_norm_axis", begin_norm_axis);
}

TEST(LayerNorm, KernelsAgreeAndMatchDifferences) {
  const Tensor x = Scattered(DType::kFp64, {2, 3, 4}, -2, 3, 1);
  const Tensor scale = Scattered(DType::kFp64, {4}, 0.5, 2, 2), bias = Scattered(DType::kFp64, {4}, -1, 1, 3);
  const Op full = LayerNormOp(2).AddInput("Scale", {"scale"}).AddInput("Bias", {"bias"});
  EXPECT_EQ(CheckKernels(AllOps(), full, {{"x", x}, {"scale", scale}, {"bias", bias}}, kNormGrads).ToString(),
            "ok");
  EXPECT_EQ(CheckKernels(AllOps(), LayerNormOp(1), {{"x", x}}, {.of = {"y"}, .wanted = {"x"}}).ToString(),
            "ok");
}

// --- softmax ---

TEST(Softmax, KernelsAgreeAndMatchDifferences) {
  for (const int axis : {-1, 0, 1}) {
    const Op op = Op("softmax").AddInput("X", {"x"}).AddOutput("Out", {"out"}).Set("axis", axis);
    const Tensors inputs = {{"x", Scattered(DType::kFp64, {3, 4, 5}, -3, 3)}};
    EXPECT_EQ(CheckKernels(AllOps(), op, inputs, {.of = {"out"}, .wanted = {"x"}}).ToString(), "ok") << axis;
  }
}

TEST(Softmax, ElementsArePositive) {
  const Op op = Op("softmax").AddInput("X", {"x"}).AddOutput("Out", {"out"});
  for (const DType type : {DType::kFp32, DType::kFp64}) {
    const Tensor x = test::Converted(test::TensorOf<float>({1, 3}, {0, -1000, 1}), type);
    const auto out = test::RunOp(AllOps(), op, {{"x", x}});
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    EXPECT_NEAR(std::log(test::ElementAt(out->at("out"), 1)), -64 - std::log1p(std::exp(-1.0)), 1e-4);
  }
}

TEST(Softmax, PropagatesNaN) {
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  const Op op = Op("softmax").AddInput("X", {"x"}).AddOutput("Out", {"out"});
  const Tensor x = test::TensorOf<float>({4, 2}, {1, std::nanf(""), kInfinite, 1, -kInfinite, 1, 2, 2});
  const auto out = test::RunOp(AllOps(), op, {{"x", x}});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  for (const int i : {0, 1, 2, 3}) EXPECT_TRUE(std::isnan(test::ElementAt(out->at("out"), i))) << i;
  EXPECT_EQ(test::ElementAt(out->at("out"), 5), 1);
  EXPECT_EQ(test::ElementAt(out->at("out"), 7), 0.5);
}

TEST(Softmax, TheAxisMustExist) {
  const Op op = Op("softmax").AddInput("X", {"x"}).AddOutput("Out", {"out"}).Set("axis", 2);
  const auto shapes = test::InferOp(AllOps(), op, {{"x", {.shape = {-1, 10}}}});
  ASSERT_FALSE(shapes.ok());
  EXPECT_EQ(shapes.status().message(), "softmax: axis (2) must be in [-2, 2) for shape [?, 10]");
}

// --- dropout ---

Op DropoutOp(const char* implementation) {
  return Op("dropout")
      .AddInput("X", {"x"})
      .AddOutput("Out", {"out"})
      .AddOutput("Mask", {"mask"})
      .Set("dropout_prob", 0.25f)
      .Set("fix_seed", true)
      .Set("seed", 7)
      .Set("dropout_implementation", implementation);
}

TEST(Dropout, KernelsAgreeAndMatchDifferences) {
  for (const char* implementation : {"downgrade_in_infer", "upscale_in_train"}) {
    const Tensors inputs = {{"x", Scattered(DType::kFp64, {4, 6}, 1, 2)}};
    EXPECT_EQ(CheckKernels(AllOps(), DropoutOp(implementation), inputs, {.of = {"out"}, .wanted = {"x"}})
                  .ToString(),
              "ok");
  }
}

TEST(Dropout, MaskDependsOnTheSeedAndHasTheGivenRate) {
  const Tensor x = Scattered(DType::kFp32, {50000}, 1, 2);
  const auto one = test::RunOp(AllOps(), DropoutOp("upscale_in_train"), {{"x", x}}, {.threads = 1});
  const auto two = test::RunOp(AllOps(), DropoutOp("upscale_in_train"), {{"x", x}}, {.threads = 2});
  const auto other =
      test::RunOp(AllOps(), DropoutOp("upscale_in_train").Set("seed", 8), {{"x", x}}, {.threads = 2});
  ASSERT_TRUE(one.ok() && two.ok() && other.ok());
  EXPECT_TRUE(Near(one->at("mask"), two->at("mask"), 0, 0).ok());
  EXPECT_FALSE(Near(one->at("mask"), other->at("mask"), 0, 0).ok());
  double kept = 0;
  for (const std::uint8_t m : one->at("mask").Span<std::uint8_t>()) kept += m;
  EXPECT_NEAR(kept / 50000, 0.75, 0.01);
}

TEST(Dropout, TestModeDrawsNothing) {
  const Tensor x = test::TensorOf<float>({2}, {1, 2});
  const auto infer = [](const char* implementation) {
    return Op("dropout")
        .AddInput("X", {"x"})
        .AddOutput("Out", {"out"})
        .Set("is_test", true)
        .Set("dropout_implementation", implementation);
  };
  const auto down = test::RunOp(AllOps(), infer("downgrade_in_infer"), {{"x", x}});
  const auto up = test::RunOp(AllOps(), infer("upscale_in_train"), {{"x", x}});
  ASSERT_TRUE(down.ok() && up.ok());
  EXPECT_TRUE(Near(down->at("out"), test::TensorOf<float>({2}, {0.5, 1}), 1e-6, 0).ok());
  EXPECT_TRUE(Near(up->at("out"), x, 0, 0).ok());
}

TEST(Dropout, ProbabilityMustBeInRange) {
  const auto shapes = test::InferOp(AllOps(), DropoutOp("upscale_in_train").Set("dropout_prob", 1.5f),
                                    {{"x", {.shape = {2}}}});
  ASSERT_FALSE(shapes.ok());
  EXPECT_EQ(shapes.status().message(), "dropout: attribute dropout_prob is 1.5; it must be in [0, 1]");
}

}  // namespace
}  // namespace penstock
