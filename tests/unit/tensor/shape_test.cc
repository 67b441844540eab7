#include "framework/tensor/shape.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <type_traits>
#include <vector>

#include "tests/support/allocations/allocations.h"

namespace penstock {
namespace {

static_assert(std::is_nothrow_move_constructible_v<Shape> && std::is_nothrow_move_assignable_v<Shape>);

// The ranks on both sides of the limit of the inline storage.
class ShapeOfRank : public testing::TestWithParam<int> {
 protected:
  static std::vector<Dim> Extents(int rank) {
    std::vector<Dim> extents(static_cast<std::size_t>(rank));
    std::iota(extents.begin(), extents.end(), Dim{1});
    return extents;
  }
  const std::vector<Dim> extents = Extents(GetParam());
  const Shape shape = Shape(extents);
};

INSTANTIATE_TEST_SUITE_P(Ranks, ShapeOfRank, testing::Values(0, 1, 2, 7, 8, 9, 10, 40));

TEST_P(ShapeOfRank, HoldsItsExtents) {
  EXPECT_EQ(shape.rank(), GetParam());
  EXPECT_EQ(shape.dims(), extents);
  for (int i = 0; i < shape.rank(); ++i) EXPECT_EQ(shape[i], i + 1);
  EXPECT_EQ(std::vector<Dim>(shape.dims()), extents);
}

TEST_P(ShapeOfRank, GrowsByAppending) {
  Shape grown;
  for (const Dim extent : extents) grown.Append(extent);
  EXPECT_EQ(grown, shape);
  EXPECT_EQ(Concat(shape, shape).rank(), 2 * GetParam());
}

TEST_P(ShapeOfRank, AllocatesOnlyAboveTheInlineRank) {
  test::BeginCounting();
  Shape copy = shape;
  copy = shape;
  EXPECT_EQ(test::EndCounting() > 0, GetParam() > Shape::kInlineRank);
}

TEST_P(ShapeOfRank, CopiesAreIndependent) {
  Shape copy = shape;
  EXPECT_EQ(copy, shape);
  copy.Append(7);
  EXPECT_NE(copy, shape);
  EXPECT_EQ(shape.dims(), extents);
  if (GetParam() == 0) return;
  copy = shape;
  copy.Set(GetParam() - 1, 99);
  EXPECT_NE(copy, shape);
  EXPECT_EQ(shape.dims(), extents);
}

TEST_P(ShapeOfRank, ReplacesEveryOtherRank) {
  for (const int rank : {0, 2, 8, 9, 12}) {
    const Shape other{Shape(Extents(rank))};
    Shape assigned = shape;
    assigned = other;
    EXPECT_EQ(assigned, other);
    Shape moved = shape;
    moved = Shape(other);
    EXPECT_EQ(moved, other);
  }
}

TEST_P(ShapeOfRank, AMoveTakesTheExtents) {
  Shape from = shape;
  Shape to = std::move(from);
  EXPECT_EQ(to, shape);
  EXPECT_EQ(from.rank(), 0);  // NOLINT(bugprone-use-after-move)
  from = std::move(to);
  EXPECT_EQ(from, shape);
}

TEST_P(ShapeOfRank, SurvivesAssignmentToItself) {
  Shape self = shape;
  Shape& alias = self;
  self = alias;
  EXPECT_EQ(self, shape);
  self = std::move(alias);
  EXPECT_EQ(self, shape);
}

TEST_P(ShapeOfRank, SlicesAndCounts) {
  const int half = GetParam() / 2;
  EXPECT_EQ(Concat(shape.First(half), shape.From(half)), shape);
  Dim count = 1;
  for (int i = 0; i < std::min(GetParam(), 10); ++i) count *= shape[i];
  EXPECT_EQ(shape.Product(0, std::min(GetParam(), 10)), count);
  EXPECT_TRUE(shape.IsKnown());
  if (GetParam() == 0) return;
  const Shape unknown = shape.WithRows(kUnknownDim);
  EXPECT_FALSE(unknown.IsKnown());
  EXPECT_EQ(unknown.Count(), kUnknownDim);
  EXPECT_TRUE(Compatible(unknown, shape));
}

}  // namespace
}  // namespace penstock
