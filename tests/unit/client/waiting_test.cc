// The messages and records of a trainer about its waits.
#include <gtest/gtest.h>

#include "executor/observe/observer.h"
#include "tests/unit/client/sink_trainer.h"

namespace penstock::test {
namespace {

class WaitingTest : public testing::Test {
 protected:
  std::vector<std::string> Recorded() const {  // "push sent w step 0 to pserver a:1"
    std::vector<std::string> lines;
    for (const observe::RecordedEvent& event : recorder_.Events()) {
      lines.push_back(StrCat(observe::NameOf(event.kind), event.variable.empty() ? "" : " ", event.variable,
                             " ", event.step, event.peer.empty() ? "" : " ", event.peer));
    }
    return lines;
  }

  FakeClock clock_;
  observe::Recorder recorder_{observe::FlightMemory::Own(), clock_};
  observe::Observer observer_{recorder_, clock_};
  SinkTrainer trainer_{2, 1, {.clock = &clock_, .observer = &observer_}};
};

TEST_F(WaitingTest, AnUnacknowledgedGradientIsReportedWithItsStep) {
  trainer_.Push(0);
  clock_.Advance(std::chrono::seconds(12));
  EXPECT_EQ(trainer_.session.WaitingFor(),
            "pserver server10:1 to take gradient of w10000 by 0 of step 0, which was sent");
  EXPECT_EQ(trainer_.session.ReportWait(),
            StrCat(trainer_.session.WaitingFor(), "; that server was last heard 12 s ago"));
}

TEST_F(WaitingTest, AGradientWithoutCreditIsReported) {
  for (std::uint64_t step = 0; step < 2; ++step) {
    trainer_.Push(0);
    trainer_.EndStep();
    trainer_.Acknowledge(step, 0, 0);
    trainer_.Deliver(0, protocol::StepEnded{step});
  }
  trainer_.Push(0);  // the window is 2
  EXPECT_EQ(trainer_.session.WaitingFor(),
            "pserver server10:1 to take gradient of w10000 by 0 of step 2, for which there is no room yet");
}

TEST_F(WaitingTest, AWaitingCompletionIsReported) {
  ASSERT_TRUE(trainer_.session.Complete().ok());
  EXPECT_EQ(trainer_.session.WaitingFor(),
            "pserver server10:1 to take the end of this trainer, which was sent");
}

TEST_F(WaitingTest, AStepRecordsSentAndReceivedBytes) {
  trainer_.Push(0);
  trainer_.Acknowledge(0, 0, 2);
  trainer_.EndStep();
  trainer_.Pull(0);
  trainer_.AnswerPull(1, 0);
  EXPECT_EQ(Recorded(), (std::vector<std::string>{
                            "peer came 0 pserver server10:1",
                            "push sent gradient of w10000 by 0 0 pserver server10:1",
                            "push taken gradient of w10000 by 0 0 pserver server10:1",
                            "step ended 0 pserver server10:1",
                            "pull asked w10000 1 pserver server10:1",
                            "pull answered w10000 1 pserver server10:1",
                        }));
  const observe::Counts counts = observer_.Now();
  EXPECT_EQ(counts.steps, 1u);
  EXPECT_EQ(counts.Total().bytes_out, 16u);
  EXPECT_EQ(counts.Total().bytes_in, 16u);
}

TEST_F(WaitingTest, ResentMessagesAreCounted) {
  trainer_.Push(0);
  clock_.Advance(std::chrono::seconds(31));
  trainer_.session.Tick();
  EXPECT_EQ(observer_.Now().Total().resent, 1u);
}

}  // namespace
}  // namespace penstock::test
