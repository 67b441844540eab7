#include "framework/ir/op.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(Op, RoleIsReadFromItsAttribute) {
  Op op("mul");
  EXPECT_EQ(op.role(), OpRole::kForward);
  op.SetRole(OpRole::kBackward);
  EXPECT_EQ(op.role(), OpRole::kBackward);
  op.Set(kRoleAttr, 2);
  EXPECT_EQ(op.role(), OpRole::kOptimize);
  const Op copy = op;
  op.RemoveAttr(kRoleAttr);
  EXPECT_EQ(op.role(), OpRole::kForward);
  EXPECT_EQ(copy.role(), OpRole::kOptimize);
  op.SetRole(OpRole::kRpc).Set(kRoleAttr, "no number");  // possible in a file
  EXPECT_EQ(op.role(), OpRole::kForward);
}

}  // namespace
}  // namespace penstock
