#include "executor/protocol/failure.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(Failure, APeersExceptionIsUnavailableWithItsText) {
  Status why = FailedPrecondition(protocol::kTrainerRaised, "ValueError: no more data");
  const Status told = protocol::FailureOf("trainer 1", why.With("train.py:3 in main: next(data)"));
  EXPECT_EQ(told.code(), StatusCode::kUnavailable);
  EXPECT_EQ(told.ToString(),
            "trainer 1 failed: ValueError: no more data   [E-peer-failed]\n  train.py:3 in main: next(data)");
}

TEST(Failure, OtherErrorsKeepTheirCodeAndId) {
  const Status told =
      protocol::FailureOf("trainer 1", InvalidArgument("E-op-index", "lookup: row 7 is outside w"));
  EXPECT_EQ(told.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(told.ToString(), "trainer 1 failed: lookup: row 7 is outside w   [E-op-index]");
}

TEST(Failure, ALostPeersErrorIsUnchanged) {
  const Status gone = Unavailable("E-peer-lost", "trainer 0 is gone");
  EXPECT_EQ(protocol::FailureOf("trainer 1", gone).ToString(), gone.ToString());
}

TEST(Failure, APeersInterruptIsNotALocalInterrupt) {
  const Status told =
      protocol::FailureOf("pserver a:1", Cancelled("E-cancelled", "pserver a:1 was cancelled"));
  EXPECT_EQ(told.code(), StatusCode::kUnavailable);
  EXPECT_EQ(told.ToString(), "pserver a:1 was interrupted   [E-peer-interrupted]");
}

TEST(Failure, SilenceIsReportedFromEightSeconds) {
  EXPECT_EQ(protocol::SilenceText(std::chrono::milliseconds(7999)), "");
  EXPECT_EQ(protocol::SilenceText(std::chrono::milliseconds(13400)), " after a silence of 13 s");
}

}  // namespace
}  // namespace penstock
