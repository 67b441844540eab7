// Rows that are asked for before the step that looks them up.
#include <gtest/gtest.h>

#include <algorithm>

#include "executor/observe/observer.h"
#include "framework/runtime/clock.h"
#include "tests/unit/client/sharded_trainer.h"

namespace penstock::test {
namespace {

class LookAheadTest : public testing::Test {
 protected:
  LookAheadTest() : trainer_({.observer = &observer_}) { trainer_.Welcome({2, 1}); }

  void ExpectRows(const Tensor& rows) const {
    for (std::size_t i = 0; i < ids_.size(); ++i)
      EXPECT_TRUE(std::ranges::equal(rows.Span<float>().subspan(i * 3, 3), RowOf(ids_[i]))) << i;
  }
  observe::AheadCounts Counted() { return observer_.Now().ahead; }

  observe::Recorder recorder_{observe::FlightMemory::Own()};
  observe::Observer observer_{recorder_};
  ShardedTrainer trainer_;
  const std::vector<std::int64_t> ids_ = {5, 1, 90, -7, 12};
};

TEST_F(LookAheadTest, TheNextStepTakesTheRows) {
  for (const bool arrives_first : {true, false}) {
    trainer_.EndStep();
    ASSERT_TRUE(trainer_.PullRowsAhead(ids_).ok());
    const auto requests = trainer_.Sent<protocol::PullRows>();
    ASSERT_EQ(requests.size(), 2u);
    EXPECT_EQ(requests[0].version, trainer_.session.step());
    Tensor out;
    const auto look_up = [&] { EXPECT_TRUE(trainer_.PullRows(ids_, out).ok()); };
    if (!arrives_first) look_up();
    for (const protocol::PullRows& request : requests) {
      EXPECT_FALSE(trainer_.session.RowsDone());
      trainer_.AnswerRows(request);
    }
    if (arrives_first) look_up();
    EXPECT_TRUE(trainer_.session.RowsDone());
    EXPECT_TRUE(trainer_.Sent<protocol::PullRows>().empty()) << "not asked twice";
    ExpectRows(out);
  }
  EXPECT_EQ(Counted().used, 2u);
  EXPECT_EQ(Counted().unused, 0u);
  Tensor again;
  ASSERT_TRUE(trainer_.PullRows(ids_, again).ok());
  EXPECT_EQ(trainer_.Sent<protocol::PullRows>().size(), 2u) << "taken once";
}

TEST_F(LookAheadTest, OtherIdsAndOtherVersionsAreAskedFor) {
  const std::vector<std::int64_t> others = {5, 1};
  Tensor out;
  ASSERT_TRUE(trainer_.PullRowsAhead(others).ok());
  EXPECT_FALSE(trainer_.Sent<protocol::PullRows>().empty());
  ASSERT_TRUE(trainer_.PullRows(ids_, out).ok());
  const auto requests = trainer_.Sent<protocol::PullRows>();
  ASSERT_EQ(requests.size(), 2u);
  for (const protocol::PullRows& request : requests) trainer_.AnswerRows(request);
  ExpectRows(out);
  ASSERT_TRUE(trainer_.PullRowsAhead(ids_).ok());
  EXPECT_EQ(trainer_.Sent<protocol::PullRows>().front().version, 0u);
  trainer_.EndStep();
  ASSERT_TRUE(trainer_.PullRows(ids_, out).ok());
  EXPECT_EQ(trainer_.Sent<protocol::PullRows>().front().version, 1u);
  EXPECT_EQ(Counted().used, 0u);
  EXPECT_EQ(Counted().unused, 2u);
}

}  // namespace
}  // namespace penstock::test
