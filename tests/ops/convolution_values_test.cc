// Values of convolutions over trees and over images of different sizes, and of perspective-transformed
// regions; the expected numbers are NumPy's, by the formulas. Also the inputs that these ops reject.
#include <gtest/gtest.h>

#include <initializer_list>

#include "operators/all_ops.h"
#include "tests/ops/gradient_case.h"
#include "tests/ops/run_one.h"

namespace penstock::test {
namespace {

// A root with three children, the first of which has a child. Edges after the edge of zeros do not count.
TEST(TreeConv, CoversANodeAndItsDescendants) {
  const Op op = WithSlots("tree_conv", {"NodesVector", "EdgeSet", "Filter"}, {"Out"});
  Tensors inputs = {{"NodesVector", Mixed({1, 6, 2})},
                    {"EdgeSet", TensorOf<std::int32_t>({1, 6, 2}, {1, 2, 1, 3, 1, 4, 2, 5, 0, 0, 5, 6})},
                    {"Filter", Mixed({2, 3, 1, 2}, 2)}};
  ExpectNear(RunOne(op, inputs, "Out"),
             {0.843004400437, 0.0327307960379, -0.0596391940891, -0.432280401074, -0.117346550113,
              0.587955406599, 0.230659026715, 0.214601433432, 0.578664603543, -0.158752539736, 0, 0});
  ExpectNear(RunOne(Op(op).Set("max_depth", 3), inputs, "Out"),
             {0.873778899819, 0.0712703882993, 0.0525908573927, -0.49026699649, -0.117346550113,
              0.587955406599, 0.230659026715, 0.214601433432, 0.578664603543, -0.158752539736, 0, 0});
  inputs["EdgeSet"] = TensorOf<std::int32_t>({1, 1, 2}, {1, 7});
  ExpectError(op, inputs, "tree_conv: edge 0 names node 7 of 6");
}

// Without a limit, the windows would never be complete.
TEST(TreeConv, VisitsANodeOfACycleOnce) {
  const Op op = WithSlots("tree_conv", {"NodesVector", "EdgeSet", "Filter"}, {"Out"}).Set("max_depth", 9);
  const Tensors inputs = {{"NodesVector", TensorOf<double>({1, 2, 1}, {1, 10})},
                          {"EdgeSet", TensorOf<std::int32_t>({1, 2, 2}, {1, 2, 2, 1})},
                          {"Filter", TensorOf<double>({1, 3, 1, 1}, {0, 0, 9})}};
  ExpectNear(RunOne(op, inputs, "Out"), {9 + 80, 90 + 8});
}

Op VarConv() {
  return WithSlots("var_conv_2d", {"X", "ROW", "COLUMN", "W"}, {"Out", "Col"})
      .Set("InputChannel", 2)
      .Set("OutputChannel", 2)
      .Set("KernelH", 2)
      .Set("KernelW", 3)
      .Set("StrideH", 2);
}

// Images of 2 rows and 3 columns, and of 3 rows and 1 column.
TEST(VarConv2d, ConvolvesImagesOfDifferentSizes) {
  Tensors inputs = {{"X", InRows(Mixed({18, 1}), {{0, 12, 18}})},
                    {"ROW", InRows(Mixed({5, 1}), {{0, 2, 5}})},
                    {"COLUMN", InRows(Mixed({4, 1}), {{0, 3, 4}})},
                    {"W", Mixed({2, 12}, 2)}};
  const Tensor out = RunOne(VarConv(), inputs, "Out");
  ExpectNear(out, {0.907941484678, -0.657415737922, -0.732424266913, -0.0371340393243, -0.599061041389,
                   1.24191369914, -0.163264149374, -0.447023563697, -0.342373228645, -0.548354072166});
  EXPECT_EQ(out.lod(), (LoD{{0, 6, 10}}));
  EXPECT_EQ(RunOne(VarConv(), inputs, "Col").lod(), (LoD{{0, 36, 60}}));
  inputs["X"].set_lod({{0, 6, 18}});
  ExpectError(
      VarConv(), inputs,
      "var_conv_2d: sequence 0 of X has 6 elements, which are not 2 channels of 2 rows and 3 columns");
  inputs["ROW"].set_lod({{0, 5}});
  ExpectError(VarConv(), inputs,
              "var_conv_2d: X has 2 sequences, ROW 1 and COLUMN 2; the numbers must be equal");
}

// Rows without elements need no memory, so their number may overflow a product.
TEST(VarConv2d, RefusesAnImageWhoseSizeOverflows) {
  constexpr Dim kMany = Dim{1} << 32;
  const Tensor many = InRows(Tensor(DType::kFp64, {kMany, 0}), {{0, kMany}});
  ExpectError(
      VarConv(),
      {{"X", InRows(Mixed({0, 1}), {{0, 0}})}, {"ROW", many}, {"COLUMN", many}, {"W", Mixed({2, 12})}},
      "var_conv_2d: sequence 0 of X has 0 elements, which are not 2 channels of 4294967296 rows and "
      "4294967296 columns");
}

// The numbers are those of the formulas, worked out for each element.
TEST(RoiPerspectiveTransform, MapsAQuadrilateralToARectangle) {
  const Op op = WithSlots("roi_perspective_transform", {"X", "ROIs"},
                          {"Out", "Mask", "TransformMatrix", "Out2InIdx", "Out2InWeights"})
                    .Set("transformed_height", 3)
                    .Set("transformed_width", 4);
  Tensors inputs = {
      {"X", Mixed({1, 2, 5, 6})},
      {"ROIs", InRows(TensorOf<double>({1, 8}, {0.4, 0.2, 4.6, 1.0, 4.2, 3.8, 0.9, 3.1}), {{0, 1}})}};
  ExpectNear(
      RunOne(op, inputs, "Out"),
      {0.553776741499,  0.0648606815813, 0.12980829853,   0.0783885389976,  -0.606341385713, 0.119221644639,
       0.0378026592413, 0.133171898457,  0.299393538746,  -0.480800847449,  0.542839864093,  -0.130097253183,
       -0.204183933507, 0.189057709688,  -0.540827184632, -0.0395721360087, 0.361551274605,  -0.47211495058,
       0.322546353832,  -0.35608266618,  -0.258567136261, 0.576609797712,   -0.283415873871, 0.311942886752});
  ExpectNear(RunOne(op, inputs, "TransformMatrix"),
             {1.35168062151, 0.371008530471, 0.4, 0.256162453952, 1.86680716051, 0.2, -0.0105042127145,
              0.134453922746, 1});
  // A region half as wide as high leaves the last columns empty; a region outside of the image is all zero.
  inputs["ROIs"] =
      InRows(TensorOf<double>({2, 8}, {0, 0, 1, 0, 1, 2, 0, 2, 8, 8, 9, 8, 9, 9, 8, 9}), {{0, 2}});
  ExpectNear(RunOne(op, inputs, "Mask"),
             {1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
}

TEST(VarConv2d, AnImageWithoutRowsHasNoOutput) {
  const Tensors inputs = {{"X", InRows(Mixed({2, 1}), {{0, 0, 2}})},
                          {"ROW", InRows(Mixed({1, 1}), {{0, 0, 1}})},
                          {"COLUMN", InRows(Mixed({3, 1}), {{0, 2, 3}})},
                          {"W", Mixed({2, 12}, 2)}};
  const Tensor out = RunOne(VarConv(), inputs, "Out");
  EXPECT_EQ(out.shape(), (Shape{2, 1}));
  EXPECT_EQ(out.lod(), (LoD{{0, 0, 2}}));
}

}  // namespace
}  // namespace penstock::test
