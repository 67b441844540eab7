// Deadlocked ranks are detected, and only those: boards over one map, with a stopped clock.
#include "executor/collective/rendezvous/wait_board.h"

#include <gtest/gtest.h>

#include <map>

namespace penstock::rendezvous {
namespace {

using std::chrono::seconds;
using Waits = std::vector<WaitedOperation>;

const WaitedOperation kFirst = {.ring = 0, .number = 1, .text = "all_reduce 1 (w@GRAD, train.py:7)"};
const WaitedOperation kOther = {.ring = 1, .number = 1, .text = "broadcast 1 (b, train.py:9)"};
const WaitedOperation kSecond = {.ring = 0, .number = 2, .text = "all_reduce 2 (v@GRAD, train.py:8)"};

class Boards : public testing::Test {
 protected:
  // Calls Look on each rank, a second after the last call.
  std::vector<std::optional<Status>> Look(const std::vector<Waits>& waits) {
    while (boards_.size() < waits.size()) {
      boards_.emplace_back(WaitBoardOptions{
          .rank = static_cast<int>(boards_.size()),
          .ranks = static_cast<int>(waits.size()),
          .after = seconds(10),
          .set =
              [this](const std::string& key, std::string value) {
                ++messages_;
                values_[key] = std::move(value);
                return OkStatus();
              },
          .get = [this](const std::string& key) { return Result<std::string>(values_[key]); },
          .clock = &clock_});
      EXPECT_TRUE(boards_.back().Open().ok());
    }
    clock_.Advance(seconds(1));
    std::vector<std::optional<Status>> found;
    for (std::size_t rank = 0; rank < waits.size(); ++rank) found.push_back(boards_[rank].Look(waits[rank]));
    return found;
  }

  // The error that rank 0 gets within so many seconds, or empty.
  std::string Told(const std::vector<Waits>& waits, int within) {
    for (int i = 0; i < within; ++i) {
      for (const std::optional<Status>& found : Look(waits)) {
        if (found) return found->ToString();
      }
    }
    return "";
  }

  FakeClock clock_;
  std::map<std::string, std::string> values_;
  std::vector<WaitBoard> boards_;
  int messages_ = 0;
};

TEST_F(Boards, DeadlockAcrossRingsNamesBothRanksAndLines) {
  EXPECT_EQ(Told({{kFirst}, {kOther}}, 10), "");
  EXPECT_EQ(Told({{kFirst}, {kOther}}, 5),
            "all ranks wait for each other, and no operation has them all: rank 0: all_reduce 1 (w@GRAD, "
            "train.py:7) on ring 0; rank 1: broadcast 1 (b, train.py:9) on ring 1   [E-collective-mismatch]");
}

TEST_F(Boards, CompleteOperationsAreNeverReported) {
  EXPECT_EQ(Told({{kFirst}, {kFirst}}, 100), "");
  EXPECT_EQ(Told({{kFirst, kOther}, {kOther}}, 100), "");
}

TEST_F(Boards, ComputingRanksAreAwaited) {
  EXPECT_EQ(Told({{kFirst}, {}, {kOther}}, 100), "");
  EXPECT_NE(Told({{kFirst}, {kFirst}, {kOther}}, 15), "");
}

TEST_F(Boards, ProgressResetsTheWait) {
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(Told({{kFirst}, {kOther}}, 11), "") << i;
    EXPECT_EQ(Told({{kSecond}, {kOther}}, 11), "") << i;
  }
}

TEST_F(Boards, ManyRanksInOneOperationAreReportedByOne) {
  EXPECT_EQ(Told({{kFirst}, {kFirst}, {kOther}, {kFirst}}, 15),
            "all ranks wait for each other, and no operation has them all: rank 0 and 2 more: all_reduce 1 "
            "(w@GRAD, train.py:7) on ring 0; rank 2: broadcast 1 (b, train.py:9) on ring 1   "
            "[E-collective-mismatch]");
}

TEST_F(Boards, ShortWaitsAreNotReported) {
  for (int i = 0; i < 50; ++i) {
    Look({{kFirst}, {kOther}});
    Look({{}, {}});
  }
  EXPECT_EQ(messages_, 2);  // both opened
}

}  // namespace
}  // namespace penstock::rendezvous
