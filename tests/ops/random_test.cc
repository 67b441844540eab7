// Random ops: the inputs of which their numbers are a function, and their distributions.
#include "framework/runtime/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "framework/ir/program.h"
#include "framework/op/kernel.h"
#include "operators/all_ops.h"
#include "operators/common/philox.h"
#include "tests/support/op_harness.h"

namespace penstock::test {
namespace {

Op RandomOp(const std::string& type, std::int64_t count, int seed) {
  Op op = Op(type).AddOutput("Out", {"out"}).Set("seed", seed);
  if (type == "truncated_gaussian_random")
    return op.Set("shape", std::vector<std::int32_t>{static_cast<std::int32_t>(count)});
  return op.Set("shape", std::vector<std::int64_t>{count});
}

std::vector<float> Draw(const Op& op, RandomSource* source = nullptr) {
  const Result<Tensors> out = RunOp(AllOps(), op, {}, {.random = source});
  PENSTOCK_CHECK(out.ok(), out.status().ToString());
  const Tensor& tensor = out->at("out");
  return {tensor.Data<float>(), tensor.Data<float>() + tensor.count()};
}

double Mean(const std::vector<float>& values, int power) {
  double sum = 0;
  for (const float value : values) sum += std::pow(value, power);
  return sum / static_cast<double>(values.size());
}

const char* const kRandomOps[] = {"uniform_random", "gaussian_random", "truncated_gaussian_random"};

// The known answers of the authors' implementation (Random123, kat_vectors).
TEST(Philox, MatchesThePublishedVectors) {
  EXPECT_EQ(Philox(0, {0, 0, 0, 0}), (PhiloxWords{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox(0xffffffffffffffff, {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}),
            (PhiloxWords{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(RandomOps, AreReproducibleForASeed) {
  for (const char* type : kRandomOps) {
    EXPECT_EQ(Draw(RandomOp(type, 1001, 7)), Draw(RandomOp(type, 1001, 7))) << type;
    EXPECT_NE(Draw(RandomOp(type, 1001, 7)), Draw(RandomOp(type, 1001, 8))) << type;
  }
}

TEST(RandomOps, ElementsDoNotDependOnTheShape) {
  for (const char* type : kRandomOps) {
    const std::vector<float> whole = Draw(RandomOp(type, 1001, 7));
    const std::vector<float> begin = Draw(RandomOp(type, 10, 7));
    EXPECT_TRUE(std::equal(begin.begin(), begin.end(), whole.begin())) << type;
  }
}

// Draws the value of a variable of a program.
std::vector<float> DrawVar(const char* type, const Var& var, const Shape& shape) {
  const Op op = RandomOp(type, shape.Count(), 7);
  Program program;
  program.MutableBlock(0).SetVar(var);
  const OpDef* def = AllOps().Find(type);
  const Argument out{{.dtype = DType::kFp32, .shape = shape}, {.index = 0}, "out"};
  KernelSetup setup(*def, op, {}, {{"Out", {out}}}, {}, {.program = &program, .block = 0});
  const std::unique_ptr<Kernel> kernel = def->FindKernel(DeviceKind::kCpu, DType::kFp32)();
  EXPECT_TRUE(kernel->Prepare(setup).ok());
  Variable variable;
  variable.As<Tensor>() = Tensor(DType::kFp32, shape);
  Variable* const variables[] = {&variable};
  KernelRun run(variables, nullptr, nullptr);
  EXPECT_TRUE(kernel->Run(run).ok());
  const std::span<const float> values = std::as_const(variable.As<Tensor>()).Span<float>();
  return {values.begin(), values.end()};
}

TEST(RandomOps, ASliceHasTheElementsOfTheWhole) {
  for (const char* type : kRandomOps) {
    Var parameter = TensorVar("out", DType::kFp32, {13, 3});
    parameter.persistable = true;
    const std::vector<float> whole = DrawVar(type, parameter, {13, 3});
    for (const bool persistable : {true, false}) {
      Var var = TensorVar("out", DType::kFp32, {6, 3});
      var.persistable = persistable;
      var.facts.slice = InitialSlice{.whole = "w", .whole_shape = {13, 3}, .row_begin = 7, .row_end = 13};
      const std::vector<float> slice = DrawVar(type, var, {6, 3});
      EXPECT_TRUE(std::equal(slice.begin(), slice.end(), whole.begin() + 7 * 3)) << type << persistable;
    }
  }
}

TEST(RandomOps, HaveTheDeclaredDistribution) {
  constexpr std::int64_t kCount = 100000;
  const std::vector<float> uniform = Draw(RandomOp("uniform_random", kCount, 3));
  EXPECT_NEAR(Mean(uniform, 1), 0, 0.01);
  EXPECT_NEAR(Mean(uniform, 2), 1.0 / 3, 0.01);
  EXPECT_GE(*std::min_element(uniform.begin(), uniform.end()), -1.0f);
  EXPECT_LT(*std::max_element(uniform.begin(), uniform.end()), 1.0f);

  const std::vector<float> normal =
      Draw(RandomOp("gaussian_random", kCount, 3).Set("mean", 1.0f).Set("std", 0.5f));
  EXPECT_NEAR(Mean(normal, 1), 1, 0.01);
  EXPECT_NEAR(Mean(normal, 2), 1 + 0.25, 0.02);

  const std::vector<float> truncated = Draw(RandomOp("truncated_gaussian_random", kCount, 3));
  EXPECT_NEAR(Mean(truncated, 1), 0, 0.01);
  EXPECT_NEAR(Mean(truncated, 2), 0.774, 0.01);  // 1 - 4 phi(2) / (Phi(2) - Phi(-2))
  for (const float value : truncated) ASSERT_LE(std::abs(value), 2.0f);
}

TEST(RandomOps, SeedZeroDrawsANewSeedEachRun) {
  RandomSource one(5), two(5);
  const Op op = RandomOp("uniform_random", 8, 0);
  const std::vector<float> first = Draw(op, &one);
  EXPECT_NE(first, Draw(op, &one));
  EXPECT_EQ(first, Draw(op, &two));
}

// The mask of `count` elements.
std::vector<std::uint8_t> Dropped(const Op& op, std::int64_t count, const Services& services) {
  const Result<Tensors> out = RunOp(AllOps(), op, {{"x", Ramp(DType::kFp32, {count}, 1, 0)}}, services);
  PENSTOCK_CHECK(out.ok(), out.status().ToString());
  const auto mask = out->at("mask").Span<std::uint8_t>();
  return {mask.begin(), mask.end()};
}

TEST(Dropout, DropsTheSameElementsWithAnyNumberOfThreads) {
  constexpr std::int64_t kCount = 100001;
  Op op = Op("dropout").AddInput("X", {"x"}).AddOutput("Out", {"out"}).AddOutput("Mask", {"mask"});
  op.Set("dropout_prob", 0.3f).Set("seed", 5).Set("fix_seed", true);
  const std::vector<std::uint8_t> mask = Dropped(op, kCount, {.threads = 1});
  EXPECT_EQ(mask, Dropped(op, kCount, {.threads = 3}));
  const auto kept = static_cast<double>(std::count(mask.begin(), mask.end(), 1));
  EXPECT_NEAR(kept / static_cast<double>(kCount), 0.7, 0.01);

  RandomSource one(5), two(5);
  op.Set("fix_seed", false);
  const std::vector<std::uint8_t> first = Dropped(op, 64, {.random = &one});
  EXPECT_NE(first, Dropped(op, 64, {.random = &one}));
  EXPECT_EQ(first, Dropped(op, 64, {.random = &two}));
}

TEST(RandomOps, UniformRandomSetsTheDiagonal) {
  const std::vector<float> values =
      Draw(RandomOp("uniform_random", 9, 3).Set("diag_num", 3).Set("diag_step", 3).Set("diag_val", 5.0f));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(values[static_cast<std::size_t>(4 * i)], 5.0f);
  EXPECT_EQ(std::count(values.begin(), values.end(), 5.0f), 3);
}

}  // namespace
}  // namespace penstock::test
