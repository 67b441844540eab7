#include "executor/pserver/memory/policies/backups.h"

#include <gtest/gtest.h>

#include "tests/support/op_harness.h"

namespace penstock::test {
namespace {

using pserver::Backups;

TEST(Backups, ARepeatedQuestionGetsTheFirstAnswer) {
  Tensor whose(DType::kInt64, {1});
  Backups backups({TensorOf<float>({2}, {1, 1}), TensorOf<float>({2}, {1, 1})}, whose);
  EXPECT_EQ(backups.Keep(1, 3, TensorOf<float>({2}, {5, 6}), 9), 9u);
  EXPECT_EQ(backups.Keep(1, 3, TensorOf<float>({2}, {7, 8}), 10), 9u);
  EXPECT_EQ(backups.of(1).Span<float>()[1], 6);
  EXPECT_EQ(backups.of(0).Span<float>()[1], 1) << "that of another trainer stays";
  EXPECT_EQ(backups.Keep(1, 4, TensorOf<float>({2}, {7, 8}), 10), 10u);
  EXPECT_EQ(backups.of(1).Span<float>()[1], 8);
  backups.SetWhose(1);
  EXPECT_EQ(whose.Span<std::int64_t>()[0], 1);
}

TEST(Backups, ALateRepeatChangesNothing) {
  Backups backups({TensorOf<float>({1}, {1})}, Tensor(DType::kInt64, {1}));
  EXPECT_EQ(backups.Keep(0, 3, TensorOf<float>({1}, {5}), 9), 9u);
  EXPECT_EQ(backups.Keep(0, 4, TensorOf<float>({1}, {6}), 10), 10u);
  EXPECT_EQ(backups.Keep(0, 3, TensorOf<float>({1}, {7}), 11), 10u);
  EXPECT_EQ(backups.of(0).Span<float>()[0], 6);
  EXPECT_EQ(backups.Keep(0, 4, TensorOf<float>({1}, {7}), 11), 10u);
}

TEST(Backups, ASetValueReplacesAllBackups) {
  Backups backups({TensorOf<float>({1}, {1}), TensorOf<float>({1}, {1})}, Tensor(DType::kInt64, {1}));
  EXPECT_EQ(backups.Keep(0, 0, TensorOf<float>({1}, {2}), 0), 0u);
  backups.Reset(TensorOf<float>({1}, {3}));
  EXPECT_EQ(backups.of(0).Span<float>()[0], 3);
  EXPECT_EQ(backups.of(1).Span<float>()[0], 3);
  EXPECT_EQ(backups.Keep(0, 0, TensorOf<float>({1}, {3}), 0), 0u);
}

}  // namespace
}  // namespace penstock::test
