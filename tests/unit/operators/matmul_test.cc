#include <gtest/gtest.h>

#include "operators/all_ops.h"
#include "tests/unit/operators/kernel_check.h"

namespace penstock {
namespace {

using test::CheckKernels;
using test::Scattered;
using test::Tensors;

Op Product(const char* type) {
  return Op(type).AddInput("X", {"x"}).AddInput("Y", {"y"}).AddOutput("Out", {"out"});
}

Tensors Factors(const Shape& x, const Shape& y) {
  return {{"x", Scattered(DType::kFp64, x, -1, 1, 1)}, {"y", Scattered(DType::kFp64, y, -1, 1, 2)}};
}

const test::GradientCheck kBoth = {.of = {"out"}, .wanted = {"x", "y"}};

TEST(Mul, FlattensBothSidesAndGivesTheProduct) {
  const Tensor x = test::TensorOf<float>({1, 2, 2}, {1, 2, 3, 4});
  const Tensor y = test::TensorOf<float>({4, 2}, {1, 0, 0, 1, 1, 0, 0, 1});
  const auto out = test::RunOp(AllOps(), Product("mul"), {{"x", x}, {"y", y}});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_TRUE(test::Near(out->at("out"), test::TensorOf<float>({1, 2}, {4, 6}), 0, 0).ok());
}

TEST(Mul, KernelsAgreeAndMatchDifferences) {
  EXPECT_EQ(CheckKernels(AllOps(), Product("mul"), Factors({3, 4}, {4, 2}), kBoth).ToString(), "ok");
  const Op flat = Product("mul").Set("x_num_col_dims", 2).Set("y_num_col_dims", 2);
  EXPECT_EQ(CheckKernels(AllOps(), flat, Factors({2, 3, 2, 2}, {2, 2, 3, 2}), kBoth).ToString(), "ok");
}

TEST(Mul, UnusedGradientsAreNotComputed) {
  EXPECT_EQ(CheckKernels(AllOps(), Product("mul"), Factors({3, 4}, {4, 2}), {.of = {"out"}, .wanted = {"y"}})
                .ToString(),
            "ok");
}

TEST(Mul, WidthMustEqualHeight) {
  const auto shapes =
      test::InferOp(AllOps(), Product("mul"), {{"x", {.shape = {-1, 784}}}, {"y", {.shape = {512, 10}}}});
  ASSERT_FALSE(shapes.ok());
  EXPECT_EQ(shapes.status().id(), "E-shape-mul");
  EXPECT_EQ(shapes.status().message(), "mul: width of X (784) must equal height of Y (512)");
}

struct MatmulCase {
  const char* name;
  Shape x, y;
  bool transpose_x, transpose_y;
  Shape out;
};

class Matmul : public testing::TestWithParam<MatmulCase> {};

TEST_P(Matmul, KernelsAgreeAndMatchDifferences) {
  const MatmulCase& p = GetParam();
  const Op op = Product("matmul")
                    .Set("transpose_X", p.transpose_x)
                    .Set("transpose_Y", p.transpose_y)
                    .Set("alpha", 0.5f);
  const Tensors factors = Factors(p.x, p.y);
  const auto out = test::RunOp(AllOps(), op, factors);
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_EQ(out->at("out").shape().ToString(), p.out.ToString());
  EXPECT_EQ(CheckKernels(AllOps(), op, factors, kBoth).ToString(), "ok");
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Matmul,
    testing::Values(MatmulCase{"matrices", {3, 4}, {4, 2}, false, false, {3, 2}},
                    MatmulCase{"transposed_x", {4, 3}, {4, 2}, true, false, {3, 2}},
                    MatmulCase{"transposed_both", {4, 3}, {2, 4}, true, true, {3, 2}},
                    MatmulCase{"batches", {2, 3, 3, 4}, {2, 3, 4, 2}, false, false, {2, 3, 3, 2}},
                    MatmulCase{"batches_transposed_y", {2, 3, 4}, {2, 5, 4}, false, true, {2, 3, 5}},
                    MatmulCase{"one_y_for_all", {3, 2, 4}, {4, 5}, false, false, {3, 2, 5}},
                    MatmulCase{"one_y_for_all_transposed_x", {3, 4, 2}, {4, 5}, true, false, {3, 2, 5}},
                    MatmulCase{"one_x_for_all", {2, 4}, {3, 4, 5}, false, false, {3, 2, 5}},
                    MatmulCase{"vectors", {4}, {4}, false, false, {1}},
                    MatmulCase{"vector_x", {4}, {4, 3}, false, false, {3}},
                    MatmulCase{"vector_y", {3, 4}, {4}, false, false, {3}}),
    [](const auto& info) { return info.param.name; });

TEST(MatmulErrors, NameBothOperands) {
  const auto shapes =
      test::InferOp(AllOps(), Product("matmul"), {{"x", {.shape = {2, 3, 4}}}, {"y", {.shape = {3, 4, 5}}}});
  ASSERT_FALSE(shapes.ok());
  EXPECT_EQ(shapes.status().message(),
            "matmul: X [2, 3, 4] and Y [3, 4, 5] must have the same number of matrices (2 and 3)");
}

TEST(MatmulShapes, UnknownExtentsStayUnknown) {
  const auto shapes = test::InferOp(AllOps(), Product("matmul").Set("transpose_Y", true),
                                    {{"x", {.shape = {-1, 8, -1, 64}}}, {"y", {.shape = {-1, 8, -1, 64}}}});
  ASSERT_TRUE(shapes.ok()) << shapes.status().ToString();
  EXPECT_EQ(shapes->at("out").shape.ToString(), "[?, 8, ?, ?]");
}

}  // namespace
}  // namespace penstock
