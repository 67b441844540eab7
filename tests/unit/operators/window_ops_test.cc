#include <gtest/gtest.h>

#include <limits>

#include "operators/all_ops.h"
#include "tests/unit/operators/kernel_check.h"

namespace penstock {
namespace {

using Ints = std::vector<std::int32_t>;
using test::CheckKernels;
using test::Near;
using test::Scattered;
using test::Tensors;

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

TEST_P(Conv2d, KernelsAgreeAndMatchDifferences) {
  const ConvCase& p = GetParam();
  const Op op = ConvOp(p);
  const Tensors inputs = {{"input", Scattered(DType::kFp64, p.input, -1, 1, 1)},
                          {"filter", Scattered(DType::kFp64, p.filter, -1, 1, 2)}};
  const auto out = test::RunOp(AllOps(), op, inputs);
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_EQ(out->at("output").shape().ToString(), p.output.ToString());
  EXPECT_EQ(CheckKernels(AllOps(), op, inputs, {.of = {"output"}, .wanted = {"input", "filter"}}).ToString(),
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
        ConvCase{"points_channels_last",
                 {2, 3, 2, 32},
                 {40, 32, 1, 1},
                 {1, 1},
                 {0, 0},
                 {1, 1},
                 1,
                 "EXPLICIT",
                 "NHWC",
                 {2, 3, 2, 40}},
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
  EXPECT_EQ(CheckKernels(AllOps(), op, inputs, {.of = {"output"}, .wanted = {"input", "filter", "bias"}})
                .ToString(),
            "ok");
  EXPECT_EQ(CheckKernels(AllOps(), op, inputs, {.of = {"output"}, .wanted = {"bias"}}).ToString(), "ok");
}

TEST(Conv2dGrad, DeclaresBiasSlotsWithoutABias) {
  const auto grads = test::MakeGradOps(AllOps(), ConvOp(kPlain, "depthwise_conv2d"), {"input", "filter"});
  ASSERT_TRUE(grads.ok());
  EXPECT_EQ(grads->front().type(), "depthwise_conv2d_grad");
  EXPECT_TRUE(grads->front().HasInputSlot("Bias"));
  EXPECT_TRUE(grads->front().HasOutputSlot("Bias@GRAD"));
  EXPECT_FALSE(grads->front().HasInputSlot("ResidualData"));
}

std::string ConvError(const ConvCase& p) {
  const auto shapes =
      test::InferOp(AllOps(), ConvOp(p), {{"input", {.shape = p.input}}, {"filter", {.shape = p.filter}}});
  return shapes.ok() ? shapes->at("output").shape.ToString() : shapes.status().message();
}

TEST(Conv2dShapes, InferenceAndErrors) {
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

TEST(Conv2dAttributes, FusionAttributesOfOtherBackendsAreRefused) {
  const auto shapes =
      test::InferOp(AllOps(), ConvOp(kPlain).Set("fuse_relu", true),
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

TEST_P(Pool2d, KernelsAgreeAndMatchDifferences) {
  const PoolCase& p = GetParam();
  const Tensors inputs = {{"x", Scattered(DType::kFp64, p.x, -1, 1)}};
  for (const Op& op : {PoolOp(p, "max", true), PoolOp(p, "avg", true), PoolOp(p, "avg", false)}) {
    const auto out = test::RunOp(AllOps(), op, inputs);
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    EXPECT_EQ(out->at("out").shape().ToString(), p.out.ToString());
    EXPECT_EQ(CheckKernels(AllOps(), op, inputs, {.of = {"out"}, .wanted = {"x"}}).ToString(), "ok");
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

TEST(Pool2dMax, AWindowOfPaddingIsTheLowestNumber) {
  const PoolCase p = {"", {1, 1, 3, 3}, {2, 2}, {2, 2}, {1, 1}, false, true, false, "NCHW", {}};
  const auto out =
      test::RunOp(AllOps(), PoolOp(p, "max", true), {{"x", Scattered(DType::kFp32, p.x, -1, 1)}});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_EQ(out->at("out").shape().ToString(), "[1, 1, 3, 3]");
  EXPECT_EQ(test::ElementAt(out->at("out"), 8), std::numeric_limits<float>::lowest());
}

TEST(Pool2dMax, GivesTheGradientToTheFirstOfEqualElements) {
  const PoolCase p = {"", {1, 1, 2, 2}, {2, 2}, {2, 2}, {0, 0}, false, false, false, "NCHW", {}};
  const Tensor x = test::TensorOf<float>({1, 1, 2, 2}, {1, 3, 3, 2});
  const Tensor one = test::TensorOf<float>({1, 1, 1, 1}, {1});
  const auto grads = test::MakeGradOps(AllOps(), PoolOp(p, "max", true), {"x"});
  ASSERT_TRUE(grads.ok());
  const auto dx =
      test::RunOp(AllOps(), grads->front(),
                  {{"x", x}, {"out", test::TensorOf<float>({1, 1, 1, 1}, {3})}, {"out@GRAD", one}});
  ASSERT_TRUE(dx.ok()) << dx.status().ToString();
  EXPECT_EQ(Near(dx->at("x@GRAD"), test::TensorOf<float>({1, 1, 2, 2}, {0, 1, 0, 0}), 0, 0).ToString(), "ok");
}

}  // namespace
}  // namespace penstock
