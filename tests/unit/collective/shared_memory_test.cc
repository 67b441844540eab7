// Groups over shared memory, with forked processes of this host.
#include "executor/collective/arena/shared_memory.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "tests/unit/collective/all_operations.h"

namespace penstock::collective {
namespace {

constexpr Nanoseconds kLimit = std::chrono::seconds(60);

std::string NewMeetingPoint() {
  static int number = 0;
  return StrCat("test-", getpid(), "-", ++number);
}

// One process per rank. Each prints its errors, and exits with 0 if there are none.
class Processes {
 public:
  using Main = std::function<std::string(const SharedMemoryRendezvous&)>;

  void Start(const SharedMemoryRendezvous& rendezvous, const Main& main) {
    const pid_t process = fork();
    if (process == 0) {
      const std::string wrong = main(rendezvous);
      if (!wrong.empty()) std::fprintf(stderr, "rank %d: %s\n", rendezvous.rank, wrong.c_str());
      _exit(wrong.empty() ? 0 : 1);
    }
    processes_.push_back(process);
  }
  void StartAll(int size, const Main& main) {
    const std::string meeting_point = NewMeetingPoint();
    for (int rank = 0; rank < size; ++rank) {
      Start({.rank = rank, .size = size, .meeting_point = meeting_point, .time_limit = kLimit}, main);
    }
  }
  // The wait status of each process, in order of their starts.
  std::vector<int> Wait() {
    std::vector<int> ends;
    for (const pid_t process : processes_) {
      int end = 0;
      EXPECT_EQ(waitpid(process, &end, 0), process);
      ends.push_back(end);
    }
    processes_.clear();
    return ends;
  }

 private:
  std::vector<pid_t> processes_;
};

// The work of a rank with its group.
Processes::Main WithGroup(std::function<std::string(CollectiveGroup&)> call) {
  return [call = std::move(call)](const SharedMemoryRendezvous& rendezvous) -> std::string {
    const Result<std::unique_ptr<CollectiveGroup>> group = MakeSharedMemoryGroup(rendezvous);
    return group.ok() ? call(**group) : group.status().ToString();
  };
}

std::string Expect(const Status& status, std::string_view id, std::string_view text) {
  const bool fits = status.id() == id && status.message().find(text) != std::string::npos;
  return fits ? "" : StrCat("expected ", id, " with '", text, "', got ", status);
}

TEST(SharedMemoryGroups, EqualSummationInRankOrder) {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    Processes processes;
    processes.StartAll(ranks, WithGroup([](CollectiveGroup& group) {
                         const std::string wrong = FirstDifferenceOfRandom(group, 11, 60);
                         return wrong.empty() && group.size() == 2 ? FirstDifference(group, 2) : wrong;
                       }));
    for (const int end : processes.Wait()) EXPECT_EQ(end, 0);
  }
}

// Reduces until an error, at most some thousand times.
Status ReduceUntilItFails(CollectiveGroup& group, const CollectiveOptions& options) {
  std::vector<float> values(std::size_t{1} << 20, 1);
  const Elements data{reinterpret_cast<std::byte*>(values.data()), static_cast<std::int64_t>(values.size()),
                      ElementType::kFp32};
  Status status;
  for (int i = 0; status.ok() && i < 5000; ++i)
    status = group.AllReduce(data, Reduction::kMean, options).Wait();
  return status;
}

// Ends while its group's thread reduces. A child process survives for a while, with all open descriptors.
void DieInTheMiddle(CollectiveGroup& group) {
  std::vector<float> values(std::size_t{1} << 20, 1);
  const Elements data{reinterpret_cast<std::byte*>(values.data()), static_cast<std::int64_t>(values.size()),
                      ElementType::kFp32};
  std::vector<Completion> started;
  for (int i = 0; i < 8; ++i) started.push_back(group.AllReduce(data, Reduction::kMean, {.label = "w@GRAD"}));
  static_cast<void>(started.front().Wait());
  if (fork() == 0) {
    for (const int standard : {0, 1, 2}) close(standard);
    alarm(20);
    pause();
  }
  raise(SIGKILL);
}

TEST(SharedMemoryGroups, NameARankKilledDuringAnOperation) {
  Processes processes;
  processes.StartAll(4, WithGroup([](CollectiveGroup& group) -> std::string {
                       if (group.rank() == 2) DieInTheMiddle(group);
                       const Status status = ReduceUntilItFails(group, {.label = "w@GRAD"});
                       const std::string wrong = Expect(status, "E-collective-peer-lost",
                                                        "rank 2 is gone: its process ended before");
                       return !wrong.empty() ? wrong
                                             : Expect(status, "E-collective-peer-lost",
                                                      "(mean of 1048576 f32, 4194304 bytes; w@GRAD)");
                     }));
  const std::vector<int> ends = processes.Wait();
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    if (rank != 2) {
      EXPECT_EQ(ends[rank], 0);
    }
  }
  EXPECT_TRUE(WIFSIGNALED(ends[2]));
}

TEST(SharedMemoryGroups, NameARankKilledWhileSending) {
  Processes processes;
  processes.StartAll(2, WithGroup([](CollectiveGroup& group) -> std::string {
                       std::string data(1000, 'x');
                       const Elements elements = ElementsOf(data, ElementType::kUInt8);
                       if (group.rank() == 0) {
                         static_cast<void>(group.Send(elements, 1).Wait());
                         raise(SIGKILL);
                       }
                       const Status first = group.Recv(elements, 0).Wait();  // its earlier operations count
                       if (!first.ok()) return first.ToString();
                       return Expect(group.Recv(elements, 0).Wait(), "E-collective-peer-lost",
                                     "message from rank 0 to rank 1 (1000 u8, 1000 bytes)");
                     }));
  EXPECT_EQ(processes.Wait()[1], 0);
}

TEST(SharedMemoryGroups, AllRanksReportMismatchedOperations) {
  Processes processes;
  processes.StartAll(
      3, WithGroup([](CollectiveGroup& group) -> std::string {
        std::string data(group.rank() == 1 ? 4'000'000 : 2'000'000, 'x');
        const Status status = group.AllReduce(ElementsOf(data, ElementType::kInt32), Reduction::kSum).Wait();
        return Expect(status, "E-collective-mismatch",
                      "rank 0 all_reduce 1 (sum of 500000 i32, 2000000 bytes), rank 1 all_reduce 1 "
                      "(sum of 1000000 i32, 4000000 bytes)");
      }));
  for (const int end : processes.Wait()) EXPECT_EQ(end, 0);
}

TEST(SharedMemoryGroups, AllRanksReportAnAbort) {
  Processes processes;
  processes.StartAll(2, WithGroup([](CollectiveGroup& group) -> std::string {
                       if (group.rank() == 1) {
                         group.Abort(DataLoss("E-test", "its data is at an end"));
                         return Expect(group.Barrier().Wait(), "E-test", "its data");
                       }
                       return Expect(group.Barrier().Wait(), "E-collective-peer-left",
                                     "rank 1 has left the group: its data is at an end");
                     }));
  for (const int end : processes.Wait()) EXPECT_EQ(end, 0);
}

TEST(SharedMemoryGroups, NameMissingRanks) {
  const auto expect_late = [](std::string_view text) {
    return [text](const SharedMemoryRendezvous& rendezvous) {
      return Expect(MakeSharedMemoryGroup(rendezvous).status(), "E-collective-join-late", text);
    };
  };
  const std::string meeting_point = NewMeetingPoint();
  const auto of = [&](int rank) {
    return SharedMemoryRendezvous{.rank = rank,
                                  .size = 3,
                                  .meeting_point = meeting_point,
                                  .time_limit = std::chrono::milliseconds(300)};
  };
  Processes processes;
  processes.Start(of(0), expect_late("missing: 1, 2"));
  EXPECT_EQ(processes.Wait()[0], 0);
  processes.Start(of(2), expect_late("rank 2 waits for rank 0"));
  EXPECT_EQ(processes.Wait()[0], 0);
}

TEST(SharedMemoryGroups, RefuseARankOfAnotherGroup) {
  const auto expect_refusal = [](const SharedMemoryRendezvous& rendezvous) {
    return Expect(MakeSharedMemoryGroup(rendezvous).status(), "E-collective-join",
                  "a process joins as rank 1 of 3; rank 0 has a group of 2");
  };
  const std::string meeting_point = NewMeetingPoint();
  Processes processes;
  processes.Start({.rank = 0, .size = 2, .meeting_point = meeting_point, .time_limit = kLimit},
                  expect_refusal);
  processes.Start({.rank = 1, .size = 3, .meeting_point = meeting_point, .time_limit = kLimit},
                  expect_refusal);
  for (const int end : processes.Wait()) EXPECT_EQ(end, 0);
}

TEST(SharedMemoryGroups, RefuseAnInvalidRankOrSocketPath) {
  for (const SharedMemoryRendezvous& wrong :
       {SharedMemoryRendezvous{.rank = 2, .size = 2, .meeting_point = "x"},
        SharedMemoryRendezvous{.rank = 0, .size = 0, .meeting_point = "x"},
        SharedMemoryRendezvous{.rank = 0, .size = 1, .meeting_point = ""},
        SharedMemoryRendezvous{.rank = 0, .size = 1, .meeting_point = std::string(49, 'x')}}) {
    EXPECT_EQ(MakeSharedMemoryGroup(wrong).status().id(), "E-collective-size");
  }
}

}  // namespace
}  // namespace penstock::collective
