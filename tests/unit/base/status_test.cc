#include "framework/base/status.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <type_traits>

#include "tests/support/allocations/allocations.h"

namespace penstock {
namespace {

static_assert(sizeof(Status) == sizeof(void*));
static_assert(sizeof(Result<void*>) == 2 * sizeof(void*));
static_assert(std::is_nothrow_move_constructible_v<Status> && std::is_nothrow_move_assignable_v<Status>);
static_assert(std::is_copy_constructible_v<Result<int>>);
static_assert(!std::is_copy_constructible_v<Result<std::unique_ptr<int>>>);

Status Refused() {
  return InvalidArgument("E-shape-mul", "mul: width ", 3, " does not fit").With("  op 3").With("note: see X");
}

constexpr const char* kRefused = "mul: width 3 does not fit   [E-shape-mul]\n    op 3\n  note: see X";

TEST(Status, OkHasNoText) {
  const Status ok;
  EXPECT_TRUE(ok.ok());
  EXPECT_EQ(ok.code(), StatusCode::kOk);
  EXPECT_EQ(ok.id(), "");
  EXPECT_EQ(ok.message(), "");
  EXPECT_TRUE(ok.details().empty());
  EXPECT_EQ(ok.ToString(), "ok");
  EXPECT_TRUE(Status(StatusCode::kOk, "E-none", "no error").ok());
  EXPECT_EQ(OkStatus().With("a line").In("a file").ToString(), "ok");
}

TEST(Status, AllocatesOnlyForAnError) {
  test::BeginCounting();
  Status ok = OkStatus();
  const Status copy = ok;
  ok = copy;
  EXPECT_EQ(test::EndCounting(), 0);
}

TEST(Status, KeepsCodeIdAndMessage) {
  const Status refused = Refused();
  EXPECT_FALSE(refused.ok());
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(refused.id(), "E-shape-mul");
  EXPECT_EQ(refused.message(), "mul: width 3 does not fit");
  EXPECT_EQ(refused.details().size(), 2u);
  EXPECT_EQ(refused.ToString(), kRefused);
  EXPECT_EQ(Refused().In("main").message(), "main: mul: width 3 does not fit");
}

TEST(Status, CopiesAreIndependent) {
  const Status first = Refused();
  Status second = first;
  second.With("added to the copy");
  EXPECT_EQ(first.ToString(), kRefused);
  EXPECT_EQ(second.details().back(), "added to the copy");
  second = first;
  EXPECT_EQ(second.ToString(), kRefused);
  second = OkStatus();
  EXPECT_TRUE(second.ok());
  EXPECT_FALSE(first.ok());
}

TEST(Status, SurvivesAssignmentToItself) {
  Status status = Refused();
  const Status& same = status;
  status = same;
  EXPECT_EQ(status.ToString(), kRefused);
  Status& alias = status;
  status = std::move(alias);
  EXPECT_EQ(status.ToString(), kRefused);
}

TEST(Status, AMoveTakesTheError) {
  Status from = Refused();
  const Status to = std::move(from);
  EXPECT_EQ(to.ToString(), kRefused);
  EXPECT_TRUE(from.ok());  // NOLINT(bugprone-use-after-move)
}

TEST(Result, HoldsAValueOrAnError) {
  const Result<std::string> value = std::string("text");
  EXPECT_TRUE(value.ok());
  EXPECT_EQ(*value, "text");
  EXPECT_EQ(value->size(), 4u);
  EXPECT_TRUE(value.status().ok());
  const Result<std::string> error = Refused();
  EXPECT_FALSE(error.ok());
  EXPECT_EQ(error.status().ToString(), kRefused);
  EXPECT_TRUE(Result<int>(1).status().ok());
}

TEST(Result, CopiesMovesAndReplacesEither) {
  Result<std::string> value = std::string("text");
  Result<std::string> error = Refused();
  const Result<std::string> copy = error;
  EXPECT_EQ(copy.status().ToString(), kRefused);
  error = value;
  EXPECT_EQ(*error, "text");
  value = copy;
  EXPECT_EQ(value.status().ToString(), kRefused);
  Result<std::string>& alias = value;
  value = alias;
  EXPECT_EQ(value.status().ToString(), kRefused);
  value = std::move(error);
  EXPECT_EQ(*std::move(value), "text");
}

TEST(Result, StaysAnErrorWhenItsStatusIsTaken) {
  Result<std::unique_ptr<int>> error = Refused();
  const Status taken = std::move(error).status();
  EXPECT_EQ(taken.ToString(), kRefused);
  EXPECT_FALSE(error.ok());  // NOLINT(bugprone-use-after-move)
}

TEST(ResultDeathTest, ReadingAMissingValueAborts) {
  const Result<int> error = Refused();
  EXPECT_DEATH((void)*error, "mul: width 3 does not fit");
  EXPECT_DEATH((void)Result<int>(OkStatus()), "a Result without a value needs an error");
}

}  // namespace
}  // namespace penstock
