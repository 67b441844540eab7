#include "executor/observe/recorder.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "framework/base/strings.h"

namespace penstock::observe {
namespace {

TEST(Recorder, KeepsEventsInOrderWithNamesAndTimes) {
  FakeClock clock;
  clock.Advance(std::chrono::seconds(5));
  Recorder recorder(FlightMemory::Own(), clock);
  const NameId peer = recorder.Intern("pserver a:1"), w = recorder.Intern("w@GRAD");
  recorder.Record(EventKind::kPushSent, 12, peer, w, 400);
  clock.Advance(std::chrono::seconds(1));
  recorder.Record(EventKind::kStepEnded, 12);
  const std::vector<RecordedEvent> events = recorder.Events();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].kind, EventKind::kPushSent);
  EXPECT_EQ(events[0].step, 12u);
  EXPECT_EQ(events[0].bytes, 400u);
  EXPECT_EQ(events[0].peer, "pserver a:1");
  EXPECT_EQ(events[0].variable, "w@GRAD");
  EXPECT_EQ(events[0].time, Nanoseconds(std::chrono::seconds(5)));
  EXPECT_EQ(events[1].kind, EventKind::kStepEnded);
  EXPECT_EQ(events[1].peer, "");
  EXPECT_EQ(events[1].time, Nanoseconds(std::chrono::seconds(6)));
}

TEST(Recorder, ANameHasOneId) {
  Recorder recorder(FlightMemory::Own());
  EXPECT_EQ(recorder.Intern("w"), recorder.Intern("w"));
  EXPECT_NE(recorder.Intern("w"), recorder.Intern("v"));
}

TEST(Recorder, KeepsTheLast4096) {
  Recorder recorder(FlightMemory::Own());
  for (std::uint64_t step = 0; step < 5000; ++step) recorder.Record(EventKind::kStepEnded, step);
  const std::vector<RecordedEvent> events = recorder.Events();
  ASSERT_EQ(events.size(), 4096u);
  EXPECT_EQ(events.front().step, 904u);
  EXPECT_EQ(events.back().step, 4999u);
}

TEST(Recorder, NamesBeyondItsCapacityHaveNoId) {
  Recorder recorder(FlightMemory::Own());
  NameId last = 1;
  for (int i = 0; last != 0 && i < 100'000; ++i) last = recorder.Intern(StrCat(std::string(900, 'x'), i));
  EXPECT_EQ(last, 0u);
  recorder.Record(EventKind::kPushSent, 1, 0, last);
  EXPECT_EQ(recorder.Events().back().variable, "");
}

TEST(Recorder, ManyThreadsLoseNothing) {
  Recorder recorder(FlightMemory::Own());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (std::uint64_t step = 0; step < 1000; ++step) recorder.Record(EventKind::kStepEnded, step);
      static_cast<void>(recorder.Events());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(recorder.Events().size(), 4000u);
}

// The memory that a launcher gives to a role.
class FlightMemoryTest : public ::testing::Test {
 protected:
  FlightMemoryTest() : descriptor_(memfd_create("flight", 0)) {
    struct stat facts {};
    fstat(descriptor_, &facts);
    inode_ = StrCat(facts.st_ino);
  }
  ~FlightMemoryTest() override {
    unsetenv("PENSTOCK_FLIGHT_FD");
    close(descriptor_);
  }
  void Give(const std::string& inode) {
    setenv("PENSTOCK_FLIGHT_FD", StrCat(descriptor_, ":", inode).c_str(), 1);
  }
  std::uint64_t Written() const {  // number of events
    void* mapped = mmap(nullptr, sizeof(FlightBlock), PROT_READ, MAP_SHARED, descriptor_, 0);
    const auto* block = static_cast<const FlightBlock*>(mapped);
    const std::uint64_t events = block->magic == FlightBlock::kMagic ? block->next.load() : 0;
    munmap(mapped, sizeof(FlightBlock));
    return events;
  }

  const int descriptor_;
  std::string inode_;
};

TEST_F(FlightMemoryTest, IsSharedWithItsProvider) {
  ASSERT_EQ(ftruncate(descriptor_, sizeof(FlightBlock)), 0);
  Give(inode_);
  Recorder recorder(FlightMemory::FromEnvironment());
  recorder.Record(EventKind::kStepEnded, 3);
  EXPECT_EQ(Written(), 1u);
  Recorder second(FlightMemory::FromEnvironment());  // of another process: it has its own memory
  second.Record(EventKind::kStepEnded, 4);
  EXPECT_EQ(Written(), 1u);
  EXPECT_EQ(second.Events().size(), 1u);
}

TEST_F(FlightMemoryTest, AnUnrelatedFileIsNotModified) {
  ASSERT_EQ(ftruncate(descriptor_, sizeof(FlightBlock)), 0);
  Give("1");
  Recorder recorder(FlightMemory::FromEnvironment());
  recorder.Record(EventKind::kStepEnded, 3);
  EXPECT_EQ(Written(), 0u);
  EXPECT_EQ(recorder.Events().size(), 1u);
}

TEST_F(FlightMemoryTest, AFileOfAnotherSizeIsNotModified) {
  ASSERT_EQ(ftruncate(descriptor_, 4096), 0);
  Give(inode_);
  Recorder recorder(FlightMemory::FromEnvironment());
  recorder.Record(EventKind::kStepEnded, 3);
  EXPECT_EQ(recorder.Events().size(), 1u);
}

}  // namespace
}  // namespace penstock::observe
