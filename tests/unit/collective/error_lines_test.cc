#include "executor/collective/group/error_lines.h"

#include <gtest/gtest.h>

namespace penstock::collective {
namespace {

TEST(ErrorLines, RoundTrip) {
  const Status bare = Unavailable("E-x", "one line");
  const Status listed = InvalidArgument("E-y", "ranks differ").With("rank 0: a").With("").With("rank 2: b");
  for (const Status& each : {bare, listed}) {
    const Status back = FromLines(each.code(), each.id(), LinesOf(each));
    EXPECT_EQ(back.ToString(), each.ToString());
    EXPECT_EQ(back.details(), each.details());
  }
}

TEST(ErrorLines, ATruncatedTextKeepsItsWholeLines) {
  EXPECT_EQ(FromLines(StatusCode::kUnavailable, "E-x", "first\nsec").details(),
            std::vector<std::string>{"sec"});
}

}  // namespace
}  // namespace penstock::collective
