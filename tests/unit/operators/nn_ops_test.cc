#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/operators/kernel_check.h"

namespace penstock {

void RegisterBatchNorm(OpRegistry& ops);
void RegisterConv2d(OpRegistry& ops);
void RegisterDropout(OpRegistry& ops);
void RegisterPool2d(OpRegistry& ops);
void RegisterSoftmax(OpRegistry& ops);

namespace {

using Ints = std::vector<std::int32_t>;
using test::CheckKernels;
using test::Near;
using test::Scattered;
using test::Tensors;

const OpRegistry& Ops() {
  static const auto* const ops = [] {
    auto* registry = new OpRegistry;
    RegisterBatchNorm(*registry);
    RegisterConv2d(*registry);
    RegisterDropout(*registry);
    RegisterPool2d(*registry);
    RegisterSoftmax(*registry);
    PENSTOCK_CHECK(registry->Finish().ok(), "the declarations hold");
    return registry;
  }();
  return *ops;
}

// --- convolution ---

struct ConvCase {
  const char* name;
  Shape input, filter;
  Ints strides, paddings, dilations;
  int groups;
  const char* padding_algorithm;
  const char* data_format;
  Shape output;
};

Op ConvOp(const ConvCase& p, const char* type = "conv2d") {
  return Op(type)
      .AddInput("Input", {"input"})
      .AddInput("Filter", {"filter"})
      .AddOutput("Output", {"output"})
      .Set("strides", p.strides)
      .Set("paddings", p.paddings)
      .Set("dilations", p.dilations)
      .Set("groups", p.groups)
      .Set("padding_algorithm", p.padding_algorithm)
      .Set("data_format", p.data_format);
}

class Conv2d : public testing::TestWithParam<ConvCase> {};

TEST_P(Conv2d, KernelsAgreeWithDifferencesAndWithEachOther) {
  const ConvCase& p = GetParam();
  const Op op = ConvOp(p);
  const Tensors inputs = {{"input", Scattered(DType::kFp64, p.input, -1, 1, 1)},
                          {"filter", Scattered(DType::kFp64, p.filter, -1, 1, 2)}};
  const auto out = test::RunOp(Ops(), op, inputs);
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_EQ(out->at("output").shape().ToString(), p.output.ToString());
  EXPECT_EQ(CheckKernels(Ops(), op, inputs, {.of = {"output"}, .wanted = {"input", "filter"}}).ToString(),
            "ok");
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Conv2d,
    testing::Values(
        ConvCase{
            "plain", {2, 3, 5, 5}, {4, 3, 3, 3}, {1, 1}, {0, 0}, {1, 1}, 1, "EXPLICIT", "NCHW", {2, 4, 3, 3}},
        ConvCase{"strided",
                 {1, 2, 6, 5},
                 {3, 2, 3, 2},
                 {2, 3},
                 {1, 0},
                 {1, 1},
                 1,
                 "EXPLICIT",
                 "NCHW",
                 {1, 3, 3, 2}},
        ConvCase{"four_paddings",
                 {1, 1, 4, 4},
                 {2, 1, 3, 3},
                 {1, 1},
                 {0, 2, 1, 0},
                 {1, 1},
                 1,
                 "EXPLICIT",
                 "NCHW",
                 {1, 2, 4, 3}},
        ConvCase{"dilated",
                 {1, 2, 6, 6},
                 {2, 2, 2, 3},
                 {1, 1},
                 {1, 1},
                 {2, 2},
                 1,
                 "EXPLICIT",
                 "NCHW",
                 {1, 2, 6, 4}},
        ConvCase{"groups",
                 {2, 4, 4, 4},
                 {6, 2, 3, 3},
                 {1, 1},
                 {1, 1},
                 {1, 1},
                 2,
                 "EXPLICIT",
                 "NCHW",
                 {2, 6, 4, 4}},
        ConvCase{"one_channel_a_group",
                 {1, 4, 4, 4},
                 {4, 1, 3, 3},
                 {1, 1},
                 {1, 1},
                 {1, 1},
                 4,
                 "EXPLICIT",
                 "NCHW",
                 {1, 4, 4, 4}},
        ConvCase{"same", {1, 2, 5, 6}, {2, 2, 3, 2}, {2, 2}, {0, 0}, {1, 1}, 1, "SAME", "NCHW", {1, 2, 3, 3}},
        ConvCase{
            "valid", {1, 2, 5, 5}, {2, 2, 3, 3}, {2, 2}, {1, 1}, {1, 1}, 1, "VALID", "NCHW", {1, 2, 2, 2}},
        ConvCase{"channels_last",
                 {1, 4, 5, 3},
                 {2, 3, 2, 2},
                 {1, 2},
                 {1, 0},
                 {1, 1},
                 1,
                 "EXPLICIT",
                 "NHWC",
                 {1, 5, 2, 2}},
        ConvCase{"blocked_forms",
                 {1, 16, 4, 4},
                 {16, 16, 1, 1},
                 {1, 1},
                 {0, 0},
                 {1, 1},
                 1,
                 "EXPLICIT",
                 "NCHW",
                 {1, 16, 4, 4}}),
    [](const auto& info) { return info.param.name; });

const ConvCase kPlain = {"", {2, 2, 4, 4}, {3, 2, 3, 3}, {1, 1},      {1, 1}, {1, 1},
                         1,  "EXPLICIT",   "NCHW",       {2, 3, 4, 4}};

TEST(Conv2dBias, IsAddedAndHasAGradient) {
  const Op op = ConvOp(kPlain).AddInput("Bias", {"bias"});
  const Tensors inputs = {{"input", Scattered(DType::kFp64, kPlain.input, -1, 1, 1)},
                          {"filter", Scattered(DType::kFp64, kPlain.filter, -1, 1, 2)},
                          {"bias", Scattered(DType::kFp64, {3}, -1, 1, 3)}};
  EXPECT_EQ(
      CheckKernels(Ops(), op, inputs, {.of = {"output"}, .wanted = {"input", "filter", "bias"}}).ToString(),
      "ok");
  EXPECT_EQ(CheckKernels(Ops(), op, inputs, {.of = {"output"}, .wanted = {"bias"}}).ToString(), "ok");
}

TEST(Conv2dGrad, NamesTheBiasSlotsEvenWithoutABias) {
  const auto grads = test::MakeGradOps(Ops(), ConvOp(kPlain, "depthwise_conv2d"), {"input", "filter"});
  ASSERT_TRUE(grads.ok());
  EXPECT_EQ(grads->front().type(), "depthwise_conv2d_grad");
  EXPECT_TRUE(grads->front().HasInputSlot("Bias"));
  EXPECT_TRUE(grads->front().HasOutputSlot("Bias@GRAD"));
  EXPECT_FALSE(grads->front().HasInputSlot("ResidualData"));
}

std::string ConvError(const ConvCase& p) {
  const auto shapes =
      test::InferOp(Ops(), ConvOp(p), {{"input", {.shape = p.input}}, {"filter", {.shape = p.filter}}});
  return shapes.ok() ? shapes->at("output").shape.ToString() : shapes.status().message();
}

TEST(Conv2dShapes, AndErrors) {
  ConvCase p = kPlain;
  p.input = {-1, 2, -1, 4};
  EXPECT_EQ(ConvError(p), "[?, 3, ?, 4]");
  p.input = {2, 3, 4, 4};
  EXPECT_EQ(ConvError(p), "conv2d: channels of Input (3) must equal channels of Filter (2) times groups (1)");
  p.input = {2, 2, 4};
  EXPECT_EQ(ConvError(p), "conv2d: rank of Input (3, shape [2, 2, 4]) must be 4");
  p = kPlain;
  p.paddings = {1, 1, 1};
  EXPECT_EQ(ConvError(p), "conv2d: paddings must have 2 or 4 values, not 3");
  p = kPlain;
  p.filter = {3, 2, 7, 3};
  EXPECT_EQ(ConvError(p), "conv2d: a window of height 7 does not fit into 4 with padding 1 and 1");
  p = kPlain;
  p.strides = {0, 1};
  EXPECT_EQ(ConvError(p), "conv2d: strides must be at least 1, not 0");
  p = kPlain;
  p.groups = 2;
  p.filter = {3, 1, 3, 3};
  EXPECT_EQ(ConvError(p), "conv2d: filters (3) must be divisible by groups (2)");
}

TEST(Conv2dAttributes, ThatAnotherBackendFusesAreRefused) {
  const auto shapes =
      test::InferOp(Ops(), ConvOp(kPlain).Set("fuse_relu", true),
                    {{"input", {.shape = kPlain.input}}, {"filter", {.shape = kPlain.filter}}});
  ASSERT_FALSE(shapes.ok());
  EXPECT_EQ(shapes.status().id(), "E-op-attr");
}

// --- pooling ---

struct PoolCase {
  const char* name;
  Shape x;
  Ints ksize, strides, paddings;
  bool global, ceil, adaptive;
  const char* data_format;
  Shape out;
};

Op PoolOp(const PoolCase& p, const char* pooling_type, bool exclusive) {
  return Op("pool2d")
      .AddInput("X", {"x"})
      .AddOutput("Out", {"out"})
      .Set("pooling_type", pooling_type)
      .Set("ksize", p.ksize)
      .Set("strides", p.strides)
      .Set("paddings", p.paddings)
      .Set("global_pooling", p.global)
      .Set("ceil_mode", p.ceil)
      .Set("adaptive", p.adaptive)
      .Set("exclusive", exclusive)
      .Set("data_format", p.data_format);
}

class Pool2d : public testing::TestWithParam<PoolCase> {};

TEST_P(Pool2d, KernelsAgreeWithDifferencesAndWithEachOther) {
  const PoolCase& p = GetParam();
  const Tensors inputs = {{"x", Scattered(DType::kFp64, p.x, -1, 1)}};
  for (const Op& op : {PoolOp(p, "max", true), PoolOp(p, "avg", true), PoolOp(p, "avg", false)}) {
    const auto out = test::RunOp(Ops(), op, inputs);
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    EXPECT_EQ(out->at("out").shape().ToString(), p.out.ToString());
    EXPECT_EQ(CheckKernels(Ops(), op, inputs, {.of = {"out"}, .wanted = {"x"}}).ToString(), "ok");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Pool2d,
    testing::Values(
        PoolCase{"plain", {2, 3, 4, 6}, {2, 2}, {2, 2}, {0, 0}, false, false, false, "NCHW", {2, 3, 2, 3}},
        PoolCase{
            "overlapping", {1, 2, 5, 5}, {3, 3}, {2, 2}, {1, 1}, false, false, false, "NCHW", {1, 2, 3, 3}},
        PoolCase{"leftover", {1, 2, 5, 5}, {2, 2}, {2, 2}, {0, 0}, false, false, false, "NCHW", {1, 2, 2, 2}},
        PoolCase{"ceil", {1, 2, 5, 6}, {2, 3}, {2, 2}, {0, 0}, false, true, false, "NCHW", {1, 2, 3, 3}},
        PoolCase{"four_paddings",
                 {1, 1, 4, 4},
                 {3, 3},
                 {1, 2},
                 {1, 0, 2, 1},
                 false,
                 false,
                 false,
                 "NCHW",
                 {1, 1, 3, 3}},
        PoolCase{"global", {2, 3, 4, 3}, {1, 1}, {1, 1}, {3, 3}, true, false, false, "NCHW", {2, 3, 1, 1}},
        PoolCase{"adaptive", {1, 2, 5, 7}, {2, 3}, {1, 1}, {0, 0}, false, false, true, "NCHW", {1, 2, 2, 3}},
        PoolCase{"channels_last",
                 {1, 4, 5, 3},
                 {2, 2},
                 {2, 2},
                 {1, 1},
                 false,
                 false,
                 false,
                 "NHWC",
                 {1, 3, 3, 3}}),
    [](const auto& info) { return info.param.name; });

TEST(Pool2dMax, AWindowOverNothingButPaddingIsTheLowestNumber) {
  const PoolCase p = {"", {1, 1, 3, 3}, {2, 2}, {2, 2}, {1, 1}, false, true, false, "NCHW", {}};
  const auto out = test::RunOp(Ops(), PoolOp(p, "max", true), {{"x", Scattered(DType::kFp32, p.x, -1, 1)}});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_EQ(out->at("out").shape().ToString(), "[1, 1, 3, 3]");
  EXPECT_EQ(test::ElementAt(out->at("out"), 8), std::numeric_limits<float>::lowest());
}

TEST(Pool2dMax, GivesTheGradientToTheFirstOfEqualElements) {
  const PoolCase p = {"", {1, 1, 2, 2}, {2, 2}, {2, 2}, {0, 0}, false, false, false, "NCHW", {}};
  const Tensor x = test::TensorOf<float>({1, 1, 2, 2}, {1, 3, 3, 2});
  const Tensor one = test::TensorOf<float>({1, 1, 1, 1}, {1});
  const auto grads = test::MakeGradOps(Ops(), PoolOp(p, "max", true), {"x"});
  ASSERT_TRUE(grads.ok());
  const auto dx =
      test::RunOp(Ops(), grads->front(),
                  {{"x", x}, {"out", test::TensorOf<float>({1, 1, 1, 1}, {3})}, {"out@GRAD", one}});
  ASSERT_TRUE(dx.ok()) << dx.status().ToString();
  EXPECT_EQ(Near(dx->at("x@GRAD"), test::TensorOf<float>({1, 1, 2, 2}, {0, 1, 0, 0}), 0, 0).ToString(), "ok");
}

// --- batch_norm ---

Op BatchNormOp() {
  return Op("batch_norm")
      .AddInput("X", {"x"})
      .AddInput("Scale", {"scale"})
      .AddInput("Bias", {"bias"})
      .AddInput("Mean", {"mean"})
      .AddInput("Variance", {"variance"})
      .AddOutput("Y", {"y"})
      .AddOutput("MeanOut", {"mean"})
      .AddOutput("VarianceOut", {"variance"})
      .AddOutput("SavedMean", {"saved_mean"})
      .AddOutput("SavedVariance", {"saved_variance"});
}

Tensors BatchNormInputs(const Shape& x, Dim channels) {
  return {{"x", Scattered(DType::kFp64, x, -2, 3, 1)},
          {"scale", Scattered(DType::kFp64, {channels}, 0.5, 2, 2)},
          {"bias", Scattered(DType::kFp64, {channels}, -1, 1, 3)},
          {"mean", Scattered(DType::kFp64, {channels}, -1, 1, 4)},
          {"variance", Scattered(DType::kFp64, {channels}, 0.5, 2, 5)}};
}

const test::GradientCheck kNormGrads = {.of = {"y"}, .wanted = {"x", "scale", "bias"}};

TEST(BatchNorm, KernelsAgreeWithDifferencesAndWithEachOther) {
  for (const Shape& x : {Shape{4, 3, 2, 3}, Shape{5, 3}, Shape{2, 3, 4}}) {
    EXPECT_EQ(CheckKernels(Ops(), BatchNormOp(), BatchNormInputs(x, 3), kNormGrads).ToString(), "ok")
        << x.ToString();
  }
  const Op last = BatchNormOp().Set("data_layout", "NHWC");
  EXPECT_EQ(CheckKernels(Ops(), last, BatchNormInputs({2, 3, 2, 4}, 4), kNormGrads).ToString(), "ok");
  const Op global = BatchNormOp().Set("use_global_stats", true);
  EXPECT_EQ(CheckKernels(Ops(), global, BatchNormInputs({4, 3, 2, 3}, 3), kNormGrads).ToString(), "ok");
}

TEST(BatchNorm, MovesTheRunningMomentsAndSavesTheInverseDeviation) {
  const Tensor x = test::TensorOf<float>({4, 1}, {1, 3, 5, 7});  // mean 4, biased variance 5
  const Tensor one = test::TensorOf<float>({1}, {1}), zero = test::TensorOf<float>({1}, {0});
  const auto out = test::RunOp(Ops(), BatchNormOp().Set("momentum", 0.75f),
                               {{"x", x}, {"scale", one}, {"bias", zero}, {"mean", zero}, {"variance", one}});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_FLOAT_EQ(test::ElementAt(out->at("mean"), 0), 1.0f);
  EXPECT_FLOAT_EQ(test::ElementAt(out->at("variance"), 0), 2.0f);
  EXPECT_FLOAT_EQ(test::ElementAt(out->at("saved_mean"), 0), 4.0f);
  EXPECT_NEAR(test::ElementAt(out->at("saved_variance"), 0), 1.0 / std::sqrt(5.00001), 1e-6);
}

TEST(BatchNorm, WithIsTestTheRunningMomentsAreUsedAndStay) {
  const Tensor x = test::TensorOf<float>({2, 1}, {1, 5});
  const auto out = test::RunOp(Ops(), BatchNormOp().Set("is_test", true).Set("epsilon", 0.0f),
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

TEST(BatchNorm, OneElementAChannelIsPassedOn) {
  const auto out =
      test::RunOp(Ops(), BatchNormOp(), test::Converted(BatchNormInputs({1, 3}, 3), DType::kFp32));
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_EQ(
      Near(out->at("y"), test::Converted(BatchNormInputs({1, 3}, 3), DType::kFp32).at("x"), 0, 0).ToString(),
      "ok");
}

TEST(BatchNorm, ChannelsMustAgree) {
  const VarInfo three = {.shape = {3}}, four = {.shape = {4}};
  const auto shapes = test::InferOp(Ops(), BatchNormOp(),
                                    {{"x", {.shape = {-1, 3, 8, 8}}},
                                     {"scale", four},
                                     {"bias", three},
                                     {"mean", three},
                                     {"variance", three}});
  ASSERT_FALSE(shapes.ok());
  EXPECT_EQ(shapes.status().message(), "batch_norm: shape of Scale ([4]) must be [3], the channels of X");
}

// --- softmax ---

TEST(Softmax, KernelsAgreeWithDifferencesAndWithEachOther) {
  for (const int axis : {-1, 0, 1}) {
    const Op op = Op("softmax").AddInput("X", {"x"}).AddOutput("Out", {"out"}).Set("axis", axis);
    const Tensors inputs = {{"x", Scattered(DType::kFp64, {3, 4, 5}, -3, 3)}};
    EXPECT_EQ(CheckKernels(Ops(), op, inputs, {.of = {"out"}, .wanted = {"x"}}).ToString(), "ok") << axis;
  }
}

TEST(Softmax, HasNoElementWithoutALogarithm) {
  const Op op = Op("softmax").AddInput("X", {"x"}).AddOutput("Out", {"out"});
  for (const DType type : {DType::kFp32, DType::kFp64}) {
    const Tensor x = test::Converted(test::TensorOf<float>({1, 3}, {0, -1000, 1}), type);
    const auto out = test::RunOp(Ops(), op, {{"x", x}});
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    EXPECT_NEAR(std::log(test::ElementAt(out->at("out"), 1)), -64 - std::log1p(std::exp(-1.0)), 1e-4);
  }
}

TEST(Softmax, TheAxisMustBeThere) {
  const Op op = Op("softmax").AddInput("X", {"x"}).AddOutput("Out", {"out"}).Set("axis", 2);
  const auto shapes = test::InferOp(Ops(), op, {{"x", {.shape = {-1, 10}}}});
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

TEST(Dropout, KernelsAgreeWithDifferencesAndWithEachOther) {
  for (const char* implementation : {"downgrade_in_infer", "upscale_in_train"}) {
    const Tensors inputs = {{"x", Scattered(DType::kFp64, {4, 6}, 1, 2)}};
    EXPECT_EQ(
        CheckKernels(Ops(), DropoutOp(implementation), inputs, {.of = {"out"}, .wanted = {"x"}}).ToString(),
        "ok");
  }
}

TEST(Dropout, TheMaskDependsOnTheSeedAloneAndDropsTheShareAskedFor) {
  const Tensor x = Scattered(DType::kFp32, {50000}, 1, 2);
  const auto one = test::RunOp(Ops(), DropoutOp("upscale_in_train"), {{"x", x}}, {.threads = 1});
  const auto two = test::RunOp(Ops(), DropoutOp("upscale_in_train"), {{"x", x}}, {.threads = 2});
  const auto other =
      test::RunOp(Ops(), DropoutOp("upscale_in_train").Set("seed", 8), {{"x", x}}, {.threads = 2});
  ASSERT_TRUE(one.ok() && two.ok() && other.ok());
  EXPECT_TRUE(Near(one->at("mask"), two->at("mask"), 0, 0).ok());
  EXPECT_FALSE(Near(one->at("mask"), other->at("mask"), 0, 0).ok());
  double kept = 0;
  for (const std::uint8_t m : one->at("mask").Span<std::uint8_t>()) kept += m;
  EXPECT_NEAR(kept / 50000, 0.75, 0.01);
}

TEST(Dropout, WithIsTestNothingIsDrawn) {
  const Tensor x = test::TensorOf<float>({2}, {1, 2});
  const auto infer = [](const char* implementation) {
    return Op("dropout")
        .AddInput("X", {"x"})
        .AddOutput("Out", {"out"})
        .Set("is_test", true)
        .Set("dropout_implementation", implementation);
  };
  const auto down = test::RunOp(Ops(), infer("downgrade_in_infer"), {{"x", x}});
  const auto up = test::RunOp(Ops(), infer("upscale_in_train"), {{"x", x}});
  ASSERT_TRUE(down.ok() && up.ok());
  EXPECT_TRUE(Near(down->at("out"), test::TensorOf<float>({2}, {0.5, 1}), 1e-6, 0).ok());
  EXPECT_TRUE(Near(up->at("out"), x, 0, 0).ok());
}

TEST(Dropout, AProbabilityIsInItsRange) {
  const auto shapes =
      test::InferOp(Ops(), DropoutOp("upscale_in_train").Set("dropout_prob", 1.5f), {{"x", {.shape = {2}}}});
  ASSERT_FALSE(shapes.ok());
  EXPECT_EQ(shapes.status().message(), "dropout: attribute dropout_prob is 1.5; it must be in [0, 1]");
}

}  // namespace
}  // namespace penstock
