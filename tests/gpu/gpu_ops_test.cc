// The CUDA kernels compared with the CPU's, and one training step on a GPU. Without a GPU the tests are
// skipped, with the reason; the build still proves that they compile and link.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "operators/all_ops.h"
#include "tests/support/op_harness.h"
#ifdef PENSTOCK_WITH_CUDA
#include "operators/cuda/cublas.h"
#include "operators/cuda/device_tensor.h"
#endif

namespace penstock {
namespace {

using test::Near;
using test::RunOp;
using test::Scattered;
using test::Tensors;

#ifdef PENSTOCK_WITH_CUDA
Status GpuUsable() { return CudaUsable(); }
test::TestDevice Gpu() { return {.kind = DeviceKind::kCuda, .to_device = ToDevice, .to_host = ToHost}; }
#else
Status GpuUsable() { return FailedPrecondition("E-cuda-none", "this build has no CUDA kernels"); }
test::TestDevice Gpu() { return {.kind = DeviceKind::kCuda}; }
#endif

#ifdef PENSTOCK_WITH_CUDA
// Runs before the tests below, which may load it.
TEST(Cublas, IsLoadedOnFirstUse) {
  const auto is_loaded = [] {
    std::ifstream maps("/proc/self/maps");
    const std::string text{std::istreambuf_iterator<char>(maps), std::istreambuf_iterator<char>()};
    return text.find("libcublas.so") != std::string::npos;
  };
  ASSERT_NE(AllOps().Find("mul"), nullptr);
  EXPECT_FALSE(is_loaded());
  const Result<const Cublas*> cublas = LoadCublas();
  EXPECT_EQ(cublas.ok(), is_loaded());
  if (!cublas.ok()) {
    EXPECT_EQ(cublas.status().id(), "E-cublas-load");
    GTEST_SKIP() << cublas.status().message();
  }
  EXPECT_STRNE((*cublas)->status_string(CUBLAS_STATUS_SUCCESS),
               (*cublas)->status_string(CUBLAS_STATUS_NOT_INITIALIZED));
  EXPECT_EQ(*LoadCublas(), *cublas);
}
#endif

class GpuOps : public testing::Test {
 protected:
  void SetUp() override {
    const Status usable = GpuUsable();
    if (!usable.ok()) GTEST_SKIP() << usable.message();
  }

  // Outputs of the op, and gradients of its inputs, on both devices.
  static void ExpectSame(const Op& op, const Tensors& inputs, const std::set<std::string>& wanted) {
    const auto run = [&](const test::TestDevice& device) -> Result<Tensors> {
      PENSTOCK_ASSIGN_OR_RETURN(Tensors known, RunOp(AllOps(), op, inputs, {}, nullptr, device));
      const Tensors out = known;
      for (const auto& [name, tensor] : inputs) known.try_emplace(name, tensor);
      if (wanted.empty()) return out;
      for (const auto& [name, tensor] : out) {
        known[name + kGradSuffix] = Scattered(tensor.dtype(), tensor.shape(), -1, 1, 7);
      }
      PENSTOCK_ASSIGN_OR_RETURN(const std::vector<Op> grads, test::MakeGradOps(AllOps(), op, wanted));
      for (const Op& grad : grads) {
        PENSTOCK_ASSIGN_OR_RETURN(const Tensors made, RunOp(AllOps(), grad, known, {}, nullptr, device));
        for (const auto& [name, tensor] : made) known[name] = tensor;
      }
      return known;
    };
    const auto on_cpu = run({});
    const auto on_gpu = run(Gpu());
    ASSERT_TRUE(on_cpu.ok()) << on_cpu.status().ToString();
    ASSERT_TRUE(on_gpu.ok()) << on_gpu.status().ToString();
    for (const auto& [name, tensor] : *on_cpu) {
      EXPECT_EQ(Near(on_gpu->at(name), tensor, 1e-5, 1e-5).ToString(), "ok") << op.type() << " " << name;
    }
  }
};

TEST_F(GpuOps, MulAgreesWithTheCpu) {
  const Op mul = Op("mul").AddInput("X", {"x"}).AddInput("Y", {"y"}).AddOutput("Out", {"out"});
  for (const DType type : {DType::kFp32, DType::kFp64}) {
    const Tensors inputs = {{"x", Scattered(type, {33, 4, 5}, -1, 1, 1)},
                            {"y", Scattered(type, {20, 17}, -1, 1, 2)}};
    ExpectSame(mul, inputs, {"x", "y"});
    const Tensors one_row = {{"x", Scattered(type, {1, 20}, -1, 1, 1)},
                             {"y", Scattered(type, {20, 1}, -1, 1, 2)}};
    ExpectSame(mul, one_row, {"x", "y"});
  }
}

TEST_F(GpuOps, ElementwiseAddAgreesWithTheCpu) {
  const Op add = Op("elementwise_add").AddInput("X", {"x"}).AddInput("Y", {"y"}).AddOutput("Out", {"out"});
  const Tensor x = Scattered(DType::kFp32, {6, 300, 4}, -1, 1, 1);
  ExpectSame(add, {{"x", x}, {"y", Scattered(DType::kFp32, {6, 300, 4}, -1, 1, 2)}}, {"x", "y"});
  ExpectSame(add, {{"x", x}, {"y", Scattered(DType::kFp32, {4}, -1, 1, 2)}}, {"x", "y"});
  const Op middle = Op(add).Set("axis", 1);
  ExpectSame(middle, {{"x", x}, {"y", Scattered(DType::kFp32, {300}, -1, 1, 2)}}, {"x", "y"});
}

TEST_F(GpuOps, SgdAgreesWithTheCpu) {
  const Op sgd = Op("sgd")
                     .AddInput("Param", {"w"})
                     .AddInput("Grad", {"g"})
                     .AddInput("LearningRate", {"lr"})
                     .AddOutput("ParamOut", {"w"});
  ExpectSame(sgd,
             {{"w", Scattered(DType::kFp32, {1000, 3}, -1, 1, 1)},
              {"g", Scattered(DType::kFp32, {1000, 3}, -1, 1, 2)},
              {"lr", test::TensorOf<float>({1}, {0.5})}},
             {});
}

// The ops of a linear layer's step, each reading the results of the previous ones: h = x . w + b; dw and db
// from dh; updates of w and b.
TEST_F(GpuOps, ATrainingStepMatchesTheCpu) {
  const std::vector<Op> step = {
      Op("mul").AddInput("X", {"x"}).AddInput("Y", {"w"}).AddOutput("Out", {"xw"}),
      Op("elementwise_add").AddInput("X", {"xw"}).AddInput("Y", {"b"}).AddOutput("Out", {"h"}).Set("axis", 1),
      Op("elementwise_add_grad")
          .AddInput("X", {"xw"})
          .AddInput("Y", {"b"})
          .AddInput("Out@GRAD", {"h"})  // the gradient of half the square of h
          .AddOutput("X@GRAD", {"xw@GRAD"})
          .AddOutput("Y@GRAD", {"b@GRAD"})
          .Set("axis", 1),
      Op("mul_grad")
          .AddInput("X", {"x"})
          .AddInput("Y", {"w"})
          .AddInput("Out@GRAD", {"xw@GRAD"})
          .AddOutput("X@GRAD", {})
          .AddOutput("Y@GRAD", {"w@GRAD"}),
      Op("sgd")
          .AddInput("Param", {"w"})
          .AddInput("Grad", {"w@GRAD"})
          .AddInput("LearningRate", {"lr"})
          .AddOutput("ParamOut", {"w"}),
      Op("sgd")
          .AddInput("Param", {"b"})
          .AddInput("Grad", {"b@GRAD"})
          .AddInput("LearningRate", {"lr"})
          .AddOutput("ParamOut", {"b"})};
  const Tensors start = {{"x", Scattered(DType::kFp32, {32, 13}, -1, 1, 1)},
                         {"w", Scattered(DType::kFp32, {13, 8}, -1, 1, 2)},
                         {"b", Scattered(DType::kFp32, {8}, -1, 1, 3)},
                         {"lr", test::TensorOf<float>({1}, {0.01})}};
  Tensors results[2];
  for (const bool gpu : {false, true}) {
    Tensors& known = results[gpu ? 1 : 0] = start;
    for (int repeat = 0; repeat < 3; ++repeat) {
      for (const Op& op : step) {
        Tensors given;
        for (const std::string& name : op.InputNames()) given[name] = known.at(name);
        const auto made = RunOp(AllOps(), op, given, {}, nullptr, gpu ? Gpu() : test::TestDevice());
        ASSERT_TRUE(made.ok()) << made.status().ToString();
        for (const auto& [name, tensor] : *made) known[name] = tensor;
      }
    }
  }
  for (const char* name : {"w", "b"}) {
    EXPECT_EQ(Near(results[1].at(name), results[0].at(name), 1e-5, 1e-6).ToString(), "ok") << name;
  }
}

}  // namespace
}  // namespace penstock
