#include "executor/pserver/job_notes.h"

#include <gtest/gtest.h>

namespace penstock::pserver {
namespace {

using std::chrono::seconds;

class JobNotesTest : public ::testing::Test {
 protected:
  JobNotes Notes(bool is_sync) {
    return JobNotes(&observer_, 3, {{.name = "w", .bytes_of_chunks = {8, 8}}}, is_sync);
  }
  const observe::PeerCounts CountsOf(int trainer) const {
    return observer_.Now().peers[static_cast<std::size_t>(trainer)].counts;
  }

  FakeClock clock_;
  observe::Recorder recorder_{observe::FlightMemory::Own(), clock_};
  observe::Observer observer_{recorder_, clock_};
};

TEST_F(JobNotesTest, WaitsAreAttributedToTheLastTrainer) {
  JobNotes notes = Notes(true);
  notes.StepEnded(0, 0, seconds(1));
  notes.StepEnded(2, 0, seconds(4));
  notes.StepEnded(2, 0, seconds(5));  // a repeat
  notes.StepEnded(1, 0, seconds(9));
  EXPECT_EQ(CountsOf(1).waited, Nanoseconds(seconds(5)));
  EXPECT_EQ(CountsOf(1).waits, 1u);
  EXPECT_EQ(CountsOf(0).waits + CountsOf(2).waits, 0u);
  EXPECT_EQ(observer_.Now().steps, 1u);
}

TEST_F(JobNotesTest, StalenessCountsUpdatesSinceThePull) {
  JobNotes notes = Notes(false);
  const auto update = [&](int trainer, std::uint64_t version) {
    notes.Taken({.param = 0, .chunk = 1, .trainer = trainer, .parts = {}});
    notes.Started({.param = 0, .chunk = 1, .step = version});
  };
  notes.Answered(0, {0, 1});
  notes.Answered(1, {0, 1});
  update(0, 0);  // as pulled
  update(1, 1);  // one update later
  notes.Answered(0, {0, 1});
  update(2, 2);  // never pulled: not counted
  update(0, 3);  // one later
  const observe::Counts now = observer_.Now();
  EXPECT_EQ(now.staleness[0], 1u);
  EXPECT_EQ(now.staleness[1], 2u);
  EXPECT_EQ(now.staleness_count(), 3u);
}

TEST_F(JobNotesTest, WithoutAnObserverTheyDoNothing) {
  JobNotes notes(nullptr, 2, {{.name = "w", .bytes_of_chunks = {8}}}, false);
  notes.Taken({.param = 0, .chunk = 0, .trainer = 1, .parts = {}});
  notes.Started({.param = 0, .chunk = 0, .step = 0});
  notes.Answered(1, {0, 0});
  notes.StepEnded(1, 0, seconds(1));
  notes.Published(1, {0, 0}, 1, 8);
  notes.Lacks(0, 1, -1);
}

}  // namespace
}  // namespace penstock::pserver
