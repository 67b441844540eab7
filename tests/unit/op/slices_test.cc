#include "framework/op/slices.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(Slices, AnOpsDeclarationSaysWhetherItWorksByRows) {
  OpRegistry ops;
  ops.Add("halve").Input("X", "", Floats()).Output("Out", "", SameTypeAs("X")).Elementwise();
  ops.Add("normalize").Input("X", "", Floats()).Output("Out", "", SameTypeAs("X"));
  EXPECT_EQ(WhatOnSlices(ops, Op("halve")), OnSlices::kByRows);
  EXPECT_EQ(WhatOnSlices(ops, Op("normalize")), OnSlices::kNeedsWhole);
  EXPECT_EQ(WhatOnSlices(ops, Op("nobody_knows_it")), OnSlices::kNeedsWhole);
}

TEST(Slices, RowsThatAreMergedOrFilledInStayApart) {
  EXPECT_EQ(WhatOnSlices(OpRegistry(), Op("merge_selected_rows")), OnSlices::kByRows);
  EXPECT_EQ(WhatOnSlices(OpRegistry(), Op("get_tensor_from_selected_rows")), OnSlices::kByRows);
}

TEST(Slices, OnlyASumOfAllElementsAddsUp) {
  Op sum("reduce_sum");
  EXPECT_EQ(WhatOnSlices(OpRegistry(), sum), OnSlices::kNeedsWhole);
  EXPECT_EQ(WhatOnSlices(OpRegistry(), sum.Set("reduce_all", true)), OnSlices::kAddsUp);
  EXPECT_EQ(WhatOnSlices(OpRegistry(), Op("reduce_max").Set("reduce_all", true)), OnSlices::kNeedsWhole);
}

}  // namespace
}  // namespace penstock
