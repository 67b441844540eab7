#include "framework/op/slices.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(Slices, DeclarationsStateWhetherAnOpWorksByRows) {
  OpRegistry ops;
  ops.Add("halve").Input("X", "", Floats()).Output("Out", "", SameTypeAs("X")).Elementwise();
  ops.Add("normalize").Input("X", "", Floats()).Output("Out", "", SameTypeAs("X"));
  EXPECT_EQ(WhatOnSlices(ops, Op("halve")), OnSlices::kByRows);
  EXPECT_EQ(WhatOnSlices(ops, Op("normalize")), OnSlices::kNeedsWhole);
  EXPECT_EQ(WhatOnSlices(ops, Op("nobody_knows_it")), OnSlices::kNeedsWhole);
}

TEST(Slices, ADeclarationMayDecideByTheOpsAttributes) {
  OpRegistry ops;
  ops.Add("total")
      .Input("X", "", Floats())
      .Output("Out", "", SameTypeAs("X"))
      .Attr("all", false, "")
      .WhenSliced([](const Op& op) {
        return op.GetOr<bool>("all", false) ? OnSlices::kAddsUp : OnSlices::kNeedsWhole;
      });
  EXPECT_EQ(WhatOnSlices(ops, Op("total")), OnSlices::kNeedsWhole);
  EXPECT_EQ(WhatOnSlices(ops, Op("total").Set("all", true)), OnSlices::kAddsUp);
}

}  // namespace
}  // namespace penstock
