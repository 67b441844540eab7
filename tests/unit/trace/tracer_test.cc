#include "executor/observe/trace/tracer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <barrier>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "executor/observe/trace/merge.h"
#include "executor/observe/trace/read.h"

namespace penstock::trace {
namespace {

namespace fs = std::filesystem;

class TracerTest : public testing::Test {
 protected:
  TracerTest() {
    std::string pattern = (fs::temp_directory_path() / "penstock-trace-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~TracerTest() override { fs::remove_all(folder_); }

  std::unique_ptr<Tracer> Make(const std::string& job = "job") {
    auto made = Tracer::Make({.folder = folder_, .job = job, .clock = &clock_});
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    return *std::move(made);
  }
  ProcessTrace Read(const Tracer& tracer) {
    auto read = ReadTrace(tracer.path());
    EXPECT_TRUE(read.ok()) << read.status().ToString();
    return *std::move(read);
  }
  static Event Op(NameId name, std::int64_t begin, std::int64_t end) {
    return {.begin_ns = begin, .end_ns = end, .name = name, .kind = EventKind::kOp};
  }

  std::string folder_;
  FakeClock clock_;
};

TEST_F(TracerTest, EventsAreReadableWhileThreadsRun) {
  const auto tracer = Make();
  tracer->SetRole("trainer 3");
  tracer->SetRole("another");
  const NameId mul = tracer->Intern("mul"), add = tracer->Intern("elementwise_add");
  EXPECT_EQ(tracer->Intern("mul"), mul);
  tracer->Record(Op(mul, 10, 20));
  std::thread([&] { tracer->Record(Op(add, 12, 15)); }).join();
  tracer->Record({.begin_ns = 30,
                  .end_ns = 30,
                  .name = add,
                  .peer = mul,
                  .flow = 7,
                  .step = 1,
                  .bytes = 4,
                  .at = 2,
                  .of = 3,
                  .kind = EventKind::kSend});

  const ProcessTrace read = Read(*tracer);
  EXPECT_EQ(read.role, "trainer 3");
  EXPECT_EQ(read.job, "job");
  EXPECT_EQ(read.pid, getpid());
  ASSERT_EQ(read.lanes.size(), 2u);
  ASSERT_EQ(read.lanes[0].events.size(), 2u);
  EXPECT_EQ(read.lanes[0].thread, getpid());
  const Event& send = read.lanes[0].events[1];
  EXPECT_EQ(read.Name(send.name), "elementwise_add");
  EXPECT_EQ(read.Name(send.peer), "mul");
  EXPECT_EQ(send.flow, 7u);
  EXPECT_EQ(send.at, 2u);
  EXPECT_EQ(send.of, 3u);
  EXPECT_EQ(read.Name(read.lanes[1].events.at(0).name), "elementwise_add");
  EXPECT_EQ(read.Name(0), "");
}

TEST_F(TracerTest, AThreadKeepsItsLastEvents) {
  const auto tracer = Make();
  constexpr std::int64_t kCount = 200'000;
  for (std::int64_t i = 0; i < kCount; ++i) tracer->Record(Op(0, i, i));
  const ProcessTrace read = Read(*tracer);
  ASSERT_EQ(read.lanes.size(), 1u);
  const std::vector<Event>& events = read.lanes[0].events;
  EXPECT_GT(events.size(), (kSegmentsOfLane - 1) * kEventsOfSegment);
  for (std::size_t i = 0; i < events.size(); ++i)
    ASSERT_EQ(events[i].begin_ns, kCount - static_cast<std::int64_t>(events.size() - i));
}

TEST_F(TracerTest, ALaterThreadReusesTheLaneOfAnEndedThread) {
  const auto tracer = Make();
  for (int i = 0; i < 5; ++i) std::thread([&] { tracer->Record(Op(0, i, i)); }).join();
  const ProcessTrace read = Read(*tracer);
  ASSERT_EQ(read.lanes.size(), 1u);
  EXPECT_EQ(read.lanes[0].events.size(), 5u);
}

// Each thread has a lane, and all have the names in common.
TEST_F(TracerTest, ThreadsNameAndRecordAtOnce) {
  const auto tracer = Make();
  constexpr int kThreads = 4, kNames = 50;
  constexpr auto kCount = static_cast<std::int64_t>(kEventsOfSegment) + 100;  // the second segment, too
  const auto name_of = [](std::int64_t i) { return StrCat("op_", i % kNames); };
  std::barrier all(kThreads);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        tracer->Record(Op(tracer->Intern(name_of(0)), 0, 0));
        all.arrive_and_wait();  // nobody ends before all have a lane
        for (std::int64_t i = 1; i < kCount; ++i) {
          const std::string name = name_of(i);
          tracer->Record(Op(i % 2 == 0 ? tracer->Intern(name) : tracer->InternInPlace(name), i, i));
        }
      });
    }
  }
  const ProcessTrace read = Read(*tracer);
  ASSERT_EQ(read.lanes.size(), static_cast<std::size_t>(kThreads));
  for (const auto& lane : read.lanes) {
    ASSERT_EQ(lane.events.size(), static_cast<std::size_t>(kCount));
    for (std::int64_t i = 0; i < kCount; ++i) {
      const Event& event = lane.events[static_cast<std::size_t>(i)];
      ASSERT_EQ(event.begin_ns, i);
      ASSERT_EQ(event.name, tracer->Intern(name_of(i)));
      ASSERT_EQ(read.Name(event.name), name_of(i));
    }
  }
}

TEST_F(TracerTest, NamesAreComparedByTextNotAddress) {
  const auto tracer = Make();
  std::string text = "mul";
  const NameId mul = tracer->InternInPlace(text);
  EXPECT_EQ(tracer->InternInPlace(text), mul);
  text = "add";
  EXPECT_EQ(tracer->InternInPlace(text), tracer->Intern("add"));
  EXPECT_NE(tracer->InternInPlace(text), mul);
}

TEST_F(TracerTest, AMissingFolderIsAnError) {
  const auto made = Tracer::Make({.folder = folder_ + "/none"});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().id(), "E-trace-write");
}

TEST_F(TracerTest, BadFilesAreErrorsThatNameThem) {
  const auto error = [&](const std::string& folder) {
    return MergeTraces(folder, folder_ + "/out").status().ToString();
  };
  EXPECT_NE(error(folder_).find("holds no traces"), std::string::npos) << error(folder_);
  EXPECT_NE(error(folder_ + "/none").find("[E-trace-folder]"), std::string::npos);

  const auto tracer = Make();
  tracer->Record(Op(0, 1, 2));
  ASSERT_TRUE(MergeTraces(folder_, folder_ + "/out").ok());
  const std::string unwritable = folder_ + "/none/out";
  EXPECT_EQ(MergeTraces(folder_, unwritable).status().id(), "E-trace-write");

  const std::string torn = folder_ + "/trace.other.1";
  fs::copy_file(tracer->path(), torn);
  fs::resize_file(torn, fs::file_size(torn) - 1);
  EXPECT_NE(error(folder_).find("trace.other.1 is cut off"), std::string::npos) << error(folder_);
  fs::resize_file(torn, 100);
  EXPECT_NE(error(folder_).find("[E-trace-file]"), std::string::npos);
  std::ofstream(torn) << std::string(2'000'000, 'x');
  EXPECT_NE(error(folder_).find("is not a trace"), std::string::npos) << error(folder_);
  fs::remove(torn);
  fs::create_directory(torn);
  EXPECT_NE(error(folder_).find("trace.other.1: Is a directory"), std::string::npos) << error(folder_);
  fs::remove(torn);

  const std::string first = tracer->path();
  fs::rename(first, torn);
  const auto second = Make("another job");
  second->Record(Op(0, 1, 2));
  EXPECT_NE(error(folder_).find("[E-trace-jobs]"), std::string::npos) << error(folder_);
}

TEST_F(TracerTest, InvalidEventBytesAreSkipped) {
  const auto tracer = Make();
  for (int i = 0; i < 3; ++i) tracer->Record(Op(0, i, i));
  {
    std::fstream file(tracer->path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(kSegmentsAt + 2 * sizeof(Event)));
    file << std::string(sizeof(Event), '\xff');
  }
  const ProcessTrace read = Read(*tracer);
  EXPECT_EQ(read.lanes.at(0).events.size(), 2u);
  EXPECT_EQ(read.invalid, 1u);
}

}  // namespace
}  // namespace penstock::trace
