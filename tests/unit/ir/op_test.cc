#include "framework/ir/op.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(Op, ItsRoleIsThatOfItsAttribute) {
  Op op("mul");
  EXPECT_EQ(op.role(), Role::kForward);
  op.SetRole(Role::kBackward);
  EXPECT_EQ(op.role(), Role::kBackward);
  op.Set(kRoleAttr, 2);
  EXPECT_EQ(op.role(), Role::kOptimize);
  const Op copy = op;
  op.RemoveAttr(kRoleAttr);
  EXPECT_EQ(op.role(), Role::kForward);
  EXPECT_EQ(copy.role(), Role::kOptimize);
  op.SetRole(Role::kRpc).Set(kRoleAttr, "no number");  // possible in a file
  EXPECT_EQ(op.role(), Role::kForward);
}

}  // namespace
}  // namespace penstock
