// Large ops on one and on several threads: the same bytes where every element is computed alone or in a fixed
// order, otherwise the same bytes in every run with as many threads.
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "operators/all_ops.h"
#include "tests/support/op_harness.h"

namespace penstock {
namespace {

using test::Scattered;
using test::Tensors;

struct Case {
  std::string name;
  Op op;
  Tensors inputs;
  std::set<std::string> wanted;  // gradients
  bool same_for_any_count = true;
};

Tensor Values(const Shape& shape, unsigned seed = 1) { return Scattered(DType::kFp32, shape, -1, 1, seed); }

Op Unary(const char* type) { return Op(type).AddInput("X", {"x"}).AddOutput("Out", {"out"}); }
Op Binary(const char* type) {
  return Op(type).AddInput("X", {"x"}).AddInput("Y", {"y"}).AddOutput("Out", {"out"});
}

Tensor Ids(Dim count, Dim below) {
  Tensor ids(DType::kInt64, {count, 1});
  for (Dim i = 0; i < count; ++i) ids.Data<std::int64_t>()[i] = i * 7919 % below;
  return ids;
}

void AddElementwise(std::vector<Case>& cases) {
  const std::set<std::string> both = {"x", "y"};
  cases.push_back(
      {"add", Binary("elementwise_add"), {{"x", Values({300, 1001})}, {"y", Values({300, 1001}, 2)}}, both});
  cases.push_back(
      {"bias", Binary("elementwise_add"), {{"x", Values({700, 501})}, {"y", Values({501}, 2)}}, both});
  cases.push_back({"scale_channels",
                   Binary("elementwise_mul").Set("axis", 1),
                   {{"x", Values({33, 20, 25, 25})}, {"y", Values({20}, 2)}},
                   both});
  cases.push_back(
      {"one_factor", Binary("elementwise_mul"), {{"x", Values({300, 1001})}, {"y", Values({1}, 2)}}, both});
  cases.push_back(
      {"outer", Binary("elementwise_sub"), {{"x", Values({600, 1})}, {"y", Values({1, 800}, 2)}}, both});
  cases.push_back({"relu", Unary("relu"), {{"x", Values({301, 1003})}}, {"x"}});
  cases.push_back({"tanh", Unary("tanh"), {{"x", Values({301, 1003})}}, {"x"}});
  cases.push_back({"scale", Unary("scale").Set("scale", 3.0f), {{"x", Values({301, 1003})}}, {}});
  cases.push_back(
      {"clip", Unary("clip").Set("min", -0.5f).Set("max", 0.5f), {{"x", Values({301, 1003})}}, {"x"}});
  cases.push_back({"sum",
                   Op("sum").AddInput("X", {"x", "y", "x"}).AddOutput("Out", {"out"}),
                   {{"x", Values({301, 1003})}, {"y", Values({301, 1003}, 2)}},
                   {}});
}

void AddReductions(std::vector<Case>& cases) {
  for (const std::vector<std::int32_t>& dim :
       std::vector<std::vector<std::int32_t>>{{0}, {1}, {2}, {0, 2}, {1, 2}, {0, 1, 2}}) {
    cases.push_back({StrCat("reduce_sum_", cases.size()),
                     Unary("reduce_sum").Set("dim", dim),
                     {{"x", Values({31, 42, 205})}},
                     {"x"}});
  }
}

void AddMoves(std::vector<Case>& cases) {
  const std::vector<std::int32_t> axis = {0, 2, 1, 3};
  cases.push_back(
      {"transpose", Unary("transpose").Set("axis", axis), {{"x", Values({31, 64, 4, 65})}}, {"x"}});
  cases.push_back({"concat",
                   Op("concat").AddInput("X", {"x", "y"}).AddOutput("Out", {"out"}).Set("axis", 1),
                   {{"x", Values({301, 403})}, {"y", Values({301, 605}, 2)}},
                   {"x", "y"}});
  cases.push_back({"lookup",
                   Op("lookup_table").AddInput("W", {"w"}).AddInput("Ids", {"x"}).AddOutput("Out", {"out"}),
                   {{"w", Values({1000, 64})}, {"x", Ids(9001, 1000)}},
                   {"w"}});
}

void AddSoftmaxAndPools(std::vector<Case>& cases) {
  cases.push_back({"softmax", Unary("softmax"), {{"x", Values({603, 501})}}, {"x"}});
  cases.push_back(
      {"softmax_columns", Unary("softmax").Set("axis", 1), {{"x", Values({30, 501, 21})}}, {"x"}});
  const std::vector<std::int32_t> two = {2, 2};
  for (const char* type : {"max", "avg"}) {
    cases.push_back({StrCat(type, "_pool"),
                     Unary("pool2d").Set("pooling_type", type).Set("ksize", two).Set("strides", two),
                     {{"x", Values({33, 20, 24, 24})}},
                     {"x"}});
  }
}

void AddNorms(std::vector<Case>& cases) {
  Op layers = Op("layer_norm").AddInput("X", {"x"}).AddInput("Scale", {"s"}).AddInput("Bias", {"b"});
  layers.AddOutput("Y", {"out"}).AddOutput("Mean", {"mean"}).AddOutput("Variance", {"variance"});
  cases.push_back({"layer_norm",
                   layers,
                   {{"x", Values({403, 301})}, {"s", Values({301}, 2)}, {"b", Values({301}, 3)}},
                   {"x", "s", "b"},
                   false});
  Op loss = Op("softmax_with_cross_entropy").AddInput("Logits", {"x"}).AddInput("Label", {"label"});
  loss.AddOutput("Softmax", {"softmax"}).AddOutput("Loss", {"out"});
  cases.push_back({"softmax_loss", loss, {{"x", Values({303, 1001})}, {"label", Ids(303, 1001)}}, {"x"}});
}

void AddProducts(std::vector<Case>& cases) {
  const std::set<std::string> both = {"x", "y"};
  cases.push_back(
      {"mul", Binary("mul"), {{"x", Values({301, 203})}, {"y", Values({203, 405}, 2)}}, both, false});
  cases.push_back(
      {"mul_wide", Binary("mul"), {{"x", Values({33, 203})}, {"y", Values({203, 1405}, 2)}}, both, false});
  cases.push_back({"matmul_batch",
                   Binary("matmul").Set("transpose_Y", true),
                   {{"x", Values({33, 64, 65})}, {"y", Values({33, 63, 65}, 2)}},
                   both,
                   false});
  cases.push_back({"matmul_one_y",
                   Binary("matmul").Set("transpose_X", true),
                   {{"x", Values({5, 165, 64})}, {"y", Values({165, 263}, 2)}},
                   both,
                   false});
  for (const int channels : {3, 16}) {
    for (const int images : {1, 2, 19}) {
      Op conv = Op("conv2d").AddInput("Input", {"x"}).AddInput("Filter", {"w"}).AddInput("Bias", {"b"});
      conv.AddOutput("Output", {"out"}).Set("paddings", std::vector<std::int32_t>{1, 1});
      cases.push_back({StrCat("conv_", channels, "_channels_", images, "_images"),
                       conv,
                       {{"x", Values({images, channels, 24, 24})},
                        {"w", Values({32, channels, 3, 3}, 2)},
                        {"b", Values({32}, 3)}},
                       {"x", "w", "b"},
                       false});
    }
  }
}

std::vector<Case> AllCases() {
  std::vector<Case> cases;
  AddElementwise(cases);
  AddReductions(cases);
  AddMoves(cases);
  AddSoftmaxAndPools(cases);
  AddNorms(cases);
  AddProducts(cases);
  return cases;
}

// The outputs of the op and of its gradient.
Result<Tensors> RunAll(const Case& c, int threads) {
  PENSTOCK_ASSIGN_OR_RETURN(Tensors all, test::RunOp(AllOps(), c.op, c.inputs, {.threads = threads}));
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<Op> grads, test::MakeGradOps(AllOps(), c.op, c.wanted));
  Tensors known = c.inputs;
  known.insert(all.begin(), all.end());
  known.insert_or_assign("out@GRAD", Values(all.at("out").shape(), 9));
  for (const Op& grad : grads) {
    PENSTOCK_ASSIGN_OR_RETURN(const Tensors made, test::RunOp(AllOps(), grad, known, {.threads = threads}));
    all.insert(made.begin(), made.end());
  }
  return all;
}

void ExpectSameBytes(const Tensors& a, const Tensors& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, tensor] : a) {
    const Tensor& other = b.at(name);
    ASSERT_EQ(tensor.bytes(), other.bytes()) << name;
    EXPECT_EQ(std::memcmp(tensor.raw(), other.raw(), tensor.bytes()), 0) << name;
  }
}

class Threads : public testing::TestWithParam<Case> {};

TEST_P(Threads, OneAndSeveralGiveTheSameResults) {
  const Case& c = GetParam();
  const auto one = RunAll(c, 1);
  ASSERT_TRUE(one.ok()) << one.status().ToString();
  for (const int threads : {2, 3}) {
    const auto several = RunAll(c, threads), again = RunAll(c, threads);
    ASSERT_TRUE(several.ok()) << several.status().ToString();
    ASSERT_TRUE(again.ok()) << again.status().ToString();
    ExpectSameBytes(*several, *again);
    if (c.same_for_any_count) {
      ExpectSameBytes(*one, *several);
      continue;
    }
    for (const auto& [name, tensor] : *one) {
      const Status near = test::Near(several->at(name), tensor, 1e-4, 1e-3);
      EXPECT_TRUE(near.ok()) << name << ": " << near.ToString();
    }
  }
}

TEST(ThreadsOfRows, TheErrorOfTheFirstRowIsReported) {
  Op loss = Op("softmax_with_cross_entropy").AddInput("Logits", {"x"}).AddInput("Label", {"label"});
  loss.AddOutput("Softmax", {"softmax"}).AddOutput("Loss", {"out"});
  Tensor labels = Ids(303, 1001);
  for (const Dim wrong : {299, 107, 205}) labels.Data<std::int64_t>()[wrong] = 1001;
  for (const int threads : {1, 2, 3}) {
    const auto out =
        test::RunOp(AllOps(), loss, {{"x", Values({303, 1001})}, {"label", labels}}, {.threads = threads});
    ASSERT_FALSE(out.ok());
    EXPECT_EQ(out.status().message(),
              "softmax_with_cross_entropy: label 1001 of row 107 must be in [0, 1001)");
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Threads, testing::ValuesIn(AllCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace penstock
