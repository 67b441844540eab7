// Some data sets end with a batch without rows: every kernel must accept it, and its gradients must be zero.
#include <gtest/gtest.h>

#include "operators/all_ops.h"
#include "tests/unit/operators/kernel_check.h"

namespace penstock {
namespace {

using test::Tensors;

// Runs the op and its gradient in f32 and f64; every gradient of a parameter in `params` must be 0.
void ExpectNoWork(const Op& op, const std::map<std::string, Shape>& shapes,
                  const std::set<std::string>& params) {
  for (const DType type : {DType::kFp32, DType::kFp64}) {
    Tensors known;
    for (const auto& [name, shape] : shapes) known[name] = test::Scattered(type, shape, 0.5, 1);
    const auto out = test::RunOp(AllOps(), op, known);
    ASSERT_TRUE(out.ok()) << op.type() << ": " << out.status().ToString();
    for (const auto& [name, tensor] : *out) {
      known[name] = tensor;
      known[name + kGradSuffix] = tensor;
    }
    std::set<std::string> wanted = params;
    wanted.insert("x");
    const auto grads = test::MakeGradOps(AllOps(), op, wanted);
    ASSERT_TRUE(grads.ok()) << grads.status().ToString();
    for (const Op& grad : *grads) {
      const auto made = test::RunOp(AllOps(), grad, known);
      ASSERT_TRUE(made.ok()) << grad.type() << ": " << made.status().ToString();
      for (const std::string& param : params) {
        const Tensor& gradient = made->at(param + kGradSuffix);
        for (std::int64_t i = 0; i < gradient.count(); ++i) {
          EXPECT_EQ(test::ElementAt(gradient, i), 0.0) << grad.type() << " " << param;
        }
      }
    }
  }
}

TEST(EmptyBatch, HasZeroGradientsOfProductsAndWindows) {
  ExpectNoWork(Op("mul").AddInput("X", {"x"}).AddInput("Y", {"y"}).AddOutput("Out", {"out"}),
               {{"x", {0, 3}}, {"y", {3, 2}}}, {"y"});
  ExpectNoWork(Op("matmul").AddInput("X", {"x"}).AddInput("Y", {"y"}).AddOutput("Out", {"out"}),
               {{"x", {0, 2, 3}}, {"y", {3, 2}}}, {"y"});
  const Op conv =
      Op("conv2d").AddInput("Input", {"x"}).AddInput("Filter", {"y"}).AddOutput("Output", {"out"});
  ExpectNoWork(conv, {{"x", {0, 8, 6, 6}}, {"y", {8, 8, 3, 3}}}, {"y"});
  ExpectNoWork(conv, {{"x", {0, 3, 6, 6}}, {"y", {8, 3, 3, 3}}}, {"y"});
  for (const char* pooling : {"max", "avg"}) {
    const Op pool = Op("pool2d").AddInput("X", {"x"}).AddOutput("Out", {"out"}).Set("pooling_type", pooling);
    ExpectNoWork(Op(pool).Set("ksize", std::vector<std::int32_t>{2, 2}), {{"x", {0, 8, 6, 6}}}, {});
  }
}

TEST(EmptyBatch, HasZeroGradientsOfNormalisations) {
  ExpectNoWork(Op("softmax").AddInput("X", {"x"}).AddOutput("Out", {"out"}), {{"x", {0, 8}}}, {});
  ExpectNoWork(Op("dropout").AddInput("X", {"x"}).AddOutput("Out", {"out"}).AddOutput("Mask", {"mask"}),
               {{"x", {0, 8}}}, {});
  ExpectNoWork(Op("layer_norm")
                   .AddInput("X", {"x"})
                   .AddInput("Scale", {"scale"})
                   .AddInput("Bias", {"bias"})
                   .AddOutput("Y", {"y"})
                   .AddOutput("Mean", {"mean"})
                   .AddOutput("Variance", {"variance"}),
               {{"x", {0, 3}}, {"scale", {3}}, {"bias", {3}}}, {"scale", "bias"});
}

TEST(EmptyBatch, KeepsTheRunningMomentsOfBatchNorm) {
  const Op op = test::BatchNormOp();
  const std::map<std::string, Shape> shapes = {
      {"x", {0, 3, 2, 2}}, {"scale", {3}}, {"bias", {3}}, {"mean", {3}}, {"variance", {3}}};
  ExpectNoWork(op, shapes, {"scale", "bias"});
  for (const bool is_test : {false, true}) {
    Tensors inputs;
    for (const auto& [name, shape] : shapes) inputs[name] = test::Scattered(DType::kFp32, shape, 0.5, 1);
    const auto out = test::RunOp(AllOps(), Op(op).Set("is_test", is_test), inputs);
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    for (const char* name : {"mean", "variance"}) {
      EXPECT_EQ(test::Near(out->at(name), inputs.at(name), 0, 0).ToString(), "ok") << name;
    }
  }
}

}  // namespace
}  // namespace penstock
