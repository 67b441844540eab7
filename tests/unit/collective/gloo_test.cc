// Groups over TCP, with forked processes of this host.
#include "executor/collective/gloo/gloo.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "executor/collective/arena/shared_memory.h"
#include "executor/collective/hierarchy/hierarchy.h"
#include "tests/unit/collective/all_operations.h"

namespace penstock::collective {
namespace {

constexpr Nanoseconds kLimit = std::chrono::seconds(60);

std::string NewName() {
  static int number = 0;
  return StrCat("gloo-test-", getpid(), "-", ++number);
}

// A key-value store shared by processes: one file per key in a folder.
KeyValues StoreIn(const std::filesystem::path& folder, Nanoseconds limit = kLimit) {
  std::filesystem::create_directories(folder);
  const auto set = [folder](const std::string& key, const std::string& value) {
    const std::filesystem::path unfinished = folder / StrCat(key, ".", getpid());
    std::ofstream(unfinished, std::ios::binary) << value;
    std::filesystem::rename(unfinished, folder / key);
    return OkStatus();
  };
  const auto get = [folder, limit](const std::string& key) -> Result<std::string> {
    const Nanoseconds began = SystemClock().Now();
    while (!std::filesystem::exists(folder / key)) {
      if (SystemClock().Now() - began > limit) return DeadlineExceeded("E-test-late", "nobody has set ", key);
      poll(nullptr, 0, 2);
    }
    std::ifstream file(folder / key, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  };
  return {.set = set, .get = get};
}

// One process per rank. Each prints its errors, and exits with 0 if there are none.
using Main = std::function<std::string(const GlooRendezvous&)>;
std::vector<int> RunRanks(int size, const Main& main) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / NewName();
  std::vector<pid_t> processes;
  for (int rank = 0; rank < size; ++rank) {
    processes.push_back(fork());
    if (processes.back() != 0) continue;
    const std::string wrong = main(
        {.rank = rank, .size = size, .address = "127.0.0.1", .store = StoreIn(folder), .time_limit = kLimit});
    if (!wrong.empty()) std::fprintf(stderr, "rank %d: %s\n", rank, wrong.c_str());
    _exit(wrong.empty() ? 0 : 1);
  }
  std::vector<int> ends;
  for (const pid_t process : processes) {
    int end = 0;
    EXPECT_EQ(waitpid(process, &end, 0), process);
    ends.push_back(end);
  }
  std::filesystem::remove_all(folder);
  return ends;
}

// The work of a rank with its group.
Main WithGroup(std::function<std::string(CollectiveGroup&)> call) {
  return [call = std::move(call)](const GlooRendezvous& rendezvous) -> std::string {
    const Result<std::unique_ptr<CollectiveGroup>> group = MakeGlooGroup(rendezvous);
    return group.ok() ? call(**group) : group.status().ToString();
  };
}

std::string Expect(const Status& status, std::string_view id, std::string_view text) {
  const bool fits = status.id() == id && status.message().find(text) != std::string::npos;
  return fits ? "" : StrCat("expected ", id, " with '", text, "', got ", status);
}

class GlooGroups : public testing::Test {
 protected:
  void SetUp() override {
    if (!HasGloo()) GTEST_SKIP() << "this build has no Gloo";
  }
};

TEST_F(GlooGroups, MatchASingleProcess) {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    const std::vector<int> ends =
        RunRanks(ranks, WithGroup([](CollectiveGroup& group) {
                   const std::string wrong = FirstDifferenceOfRandom(group, 11, 60);
                   return wrong.empty() && group.size() == 3 ? FirstDifference(group, 2) : wrong;
                 }));
    for (const int end : ends) EXPECT_EQ(end, 0) << ranks << " ranks";
  }
}

// Adds the values of three ranks, whose parts take several pieces, the last of which are short.
Main SumOf(ElementType type, std::int64_t count) {
  return WithGroup([type, count](CollectiveGroup& group) -> std::string {
    std::string data = ValuesOf(type, count, group.rank(), 5);
    const Status status = group.AllReduce(ElementsOf(data, type), Reduction::kSum).Wait();
    if (!status.ok()) return status.ToString();
    return data == ReducedInOrder(type, Reduction::kSum, count, 3, 5) ? "" : "other bytes";
  });
}

TEST_F(GlooGroups, AddManyPiecesInRankOrder) {
  for (const ElementType type : {ElementType::kInt32, ElementType::kFp32, ElementType::kFp16})
    EXPECT_EQ(RunRanks(3, SumOf(type, 9'000'001)), std::vector<int>(3, 0)) << ElementTypeName(type);
}

TEST_F(GlooGroups, UseSmallerPiecesOnDifferentAddresses) {
  EXPECT_EQ(RunRanks(3,
                     [](GlooRendezvous rendezvous) {
                       if (rendezvous.rank == 2) rendezvous.address = "127.0.0.2";
                       return SumOf(ElementType::kFp32, 1'000'001)(rendezvous);
                     }),
            std::vector<int>(3, 0));
}

// Reduces until an error, at most some thousand times.
Status ReduceUntilItFails(CollectiveGroup& group) {
  std::vector<float> values(std::size_t{1} << 18, 1);
  const Elements data{reinterpret_cast<std::byte*>(values.data()), static_cast<std::int64_t>(values.size()),
                      ElementType::kFp32};
  Status status;
  for (int i = 0; status.ok() && i < 5000; ++i)
    status = group.AllReduce(data, Reduction::kMean, {.label = "w@GRAD"}).Wait();
  return status;
}

TEST_F(GlooGroups, NameARankKilledDuringAnOperation) {
  const std::vector<int> ends = RunRanks(
      4, WithGroup([](CollectiveGroup& group) -> std::string {
        if (group.rank() == 2) {
          std::vector<float> values(std::size_t{1} << 18, 1);
          const Elements data{reinterpret_cast<std::byte*>(values.data()),
                              static_cast<std::int64_t>(values.size()), ElementType::kFp32};
          std::vector<Completion> started;
          for (int i = 0; i < 8; ++i)
            started.push_back(group.AllReduce(data, Reduction::kMean, {.label = "w@GRAD"}));
          static_cast<void>(started.front().Wait());
          raise(SIGKILL);
        }
        const Status status = ReduceUntilItFails(group);
        const std::string wrong =
            Expect(status, "E-collective-peer-lost", "rank 2 is gone: its process ended before");
        return !wrong.empty()
                   ? wrong
                   : Expect(status, "E-collective-peer-lost", "(mean of 262144 f32, 1048576 bytes; w@GRAD)");
      }));
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    if (rank != 2) {
      EXPECT_EQ(ends[rank], 0);
    }
  }
  EXPECT_TRUE(WIFSIGNALED(ends[2]));
}

// Ends all TCP connections of this process.
void BreakConnections() {
  for (int descriptor = 0; descriptor < 1024; ++descriptor) {
    int family = 0;
    socklen_t size = sizeof(family);
    if (getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &family, &size) == 0 && family == AF_INET)
      shutdown(descriptor, SHUT_RDWR);
  }
}

TEST_F(GlooGroups, TellABrokenConnectionFromAnEndedProcess) {
  const std::vector<int> ends = RunRanks(
      3, WithGroup([](CollectiveGroup& group) -> std::string {
        if (group.rank() == 1) BreakConnections();
        const Status status = ReduceUntilItFails(group);
        // The process outlives the others' search for the cause.
        if (group.rank() == 1) poll(nullptr, 0, 2000);
        const std::string wrong = Expect(status, "E-collective-link-broken", "connection to rank ");
        return !wrong.empty()
                   ? wrong
                   : Expect(status, "E-collective-link-broken", ", whose process still runs, was broken");
      }));
  EXPECT_EQ(ends, std::vector<int>(3, 0));
}

TEST_F(GlooGroups, AllRanksReportMismatchedOperations) {
  const std::vector<int> ends = RunRanks(
      3, WithGroup([](CollectiveGroup& group) -> std::string {
        std::string data(group.rank() == 1 ? 4'000'000 : 2'000'000, 'x');
        const Status status = group.AllReduce(ElementsOf(data, ElementType::kInt32), Reduction::kSum).Wait();
        return Expect(status, "E-collective-mismatch",
                      "rank 0 all_reduce 1 (sum of 500000 i32, 2000000 bytes), rank 1 all_reduce 1 "
                      "(sum of 1000000 i32, 4000000 bytes)");
      }));
  for (const int end : ends) EXPECT_EQ(end, 0);
}

TEST_F(GlooGroups, BothEndsReportAMessageSizeMismatch) {
  const std::vector<int> ends = RunRanks(
      2, WithGroup([](CollectiveGroup& group) -> std::string {
        std::string data(group.rank() == 0 ? 1'000'000 : 10, 'x');
        const Elements elements = ElementsOf(data, ElementType::kUInt8);
        const Status status = (group.rank() == 0 ? group.Send(elements, 1) : group.Recv(elements, 0)).Wait();
        return Expect(status, "E-collective-mismatch",
                      "rank 0 sends message from rank 0 to rank 1 (1000000 u8");
      }));
  for (const int end : ends) EXPECT_EQ(end, 0);
}

TEST_F(GlooGroups, AnAbortEndsTheWaitsOfAllRanks) {
  const std::vector<int> ends = RunRanks(
      3, WithGroup([](CollectiveGroup& group) -> std::string {
        if (group.rank() != 1) {
          return Expect(group.Barrier().Wait(), "E-collective-peer-left",
                        "rank 1 has left the group: its data is at an end");
        }
        std::string data(8, 'x');
        const Completion waits = group.Recv(ElementsOf(data, ElementType::kUInt8), 0);  // no rank sends it
        group.Abort(DataLoss("E-test", "its data is at an end"));
        return Expect(waits.Wait(), "E-test", "its data");
      }));
  for (const int end : ends) EXPECT_EQ(end, 0);
}

TEST_F(GlooGroups, ReportARankThatHasLeft) {
  const std::vector<int> ends =
      RunRanks(2, WithGroup([](CollectiveGroup& group) -> std::string {
                 const Status first = group.Barrier().Wait();
                 if (!first.ok()) return first.ToString();
                 if (group.rank() == 1) return "";
                 return Expect(group.Barrier({.label = "the end"}).Wait(), "E-collective-peer-left",
                               "rank 1 has left the group: it takes no part in "
                               "barrier 2 (the end)");
               }));
  for (const int end : ends) EXPECT_EQ(end, 0);
}

TEST_F(GlooGroups, ReportLongWaits) {
  const std::vector<int> ends = RunRanks(2, [](GlooRendezvous rendezvous) {
    rendezvous.report_after = std::chrono::milliseconds(20);
    rendezvous.names = {{5, 7}};
    return WithGroup([](CollectiveGroup& group) -> std::string {
      testing::internal::CaptureStderr();
      if (group.rank() == 1) poll(nullptr, 0, 500);
      const Status status = group.Barrier({.label = "the end"}).Wait();
      const std::string log = testing::internal::GetCapturedStderr();
      if (!status.ok()) return status.ToString();
      const bool reported = log.find("s in barrier 1 (the end) of rank 5 for rank 7") != std::string::npos;
      return reported == (group.rank() == 0) ? "" : StrCat("its log is ", log);
    })(rendezvous);
  });
  for (const int end : ends) EXPECT_EQ(end, 0);
}

TEST_F(GlooGroups, ConnectTheHostsOfAHierarchy) {
  const std::string name = NewName();
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / name;
  const std::vector<int> ends = RunRanks(4, [&](const GlooRendezvous& rendezvous) -> std::string {
    const int host = rendezvous.rank / 2, local = rendezvous.rank % 2;
    Result<std::unique_ptr<CollectiveGroup>> inner =
        MakeSharedMemoryGroup({.rank = local,
                               .size = 2,
                               .meeting_point = StrCat(name, "-", host),
                               .time_limit = kLimit,
                               .names = {{2 * host, 2 * host + 1}}});
    if (!inner.ok()) return inner.status().ToString();
    Hierarchy hierarchy{.rank = rendezvous.rank,
                        .hosts = {{0, 1}, {2, 3}},
                        .inner = std::move(inner).value(),
                        .outer = nullptr};
    if (local == 0) {
      Result<std::unique_ptr<CollectiveGroup>> outer = MakeGlooGroup({.rank = host,
                                                                      .size = 2,
                                                                      .address = "127.0.0.1",
                                                                      .store = StoreIn(folder),
                                                                      .time_limit = kLimit,
                                                                      .names = {{0, 2}}});
      if (!outer.ok()) return outer.status().ToString();
      hierarchy.outer = std::move(outer).value();
    }
    const Result<std::unique_ptr<CollectiveGroup>> group = MakeHierarchicalGroup(std::move(hierarchy));
    if (!group.ok()) return group.status().ToString();
    const std::string wrong = FirstDifferenceOfRandom(**group, 4, 40, false);
    if (!wrong.empty()) return wrong;
    if (rendezvous.rank == 3) raise(SIGKILL);
    const Status status = ReduceUntilItFails(**group);
    // Host 1 loses a rank; its leader has told the other host that it left.
    if (host == 0 && status.message().find("rank 2 has left the group: among") == std::string::npos)
      return status.ToString();
    return Expect(status, host == 1 ? "E-collective-peer-lost" : "E-collective-peer-left",
                  "among ranks 2, 3 of a host: rank 3 is gone: its process ended before");
  });
  std::filesystem::remove_all(folder);
  for (std::size_t rank = 0; rank < 3; ++rank) EXPECT_EQ(ends[rank], 0);
}

TEST_F(GlooGroups, ReportWhyTheyCannotConnect) {
  const auto failing = [](const std::string&) -> Result<std::string> {
    return Unavailable("E-test", "the store is gone");
  };
  const KeyValues store{.set = [](const std::string&, std::string) { return OkStatus(); }, .get = failing};
  EXPECT_EQ(MakeGlooGroup({.rank = 1, .size = 2, .address = "127.0.0.1", .store = store}).status().id(),
            "E-test");
  EXPECT_EQ(MakeGlooGroup({.rank = 0, .size = 2, .address = "192.0.2.7", .store = store}).status().id(),
            "E-collective-join");
}

TEST(GlooGroup, RefusesARankOutOfRange) {
  EXPECT_EQ(MakeGlooGroup({.rank = 2, .size = 2, .address = "127.0.0.1", .store = {}}).status().id(),
            "E-collective-size");
  EXPECT_EQ(MakeGlooGroup({.rank = 0, .size = 0, .address = "127.0.0.1", .store = {}}).status().id(),
            "E-collective-size");
}

TEST(GlooGroup, IsRefusedByABuildWithoutGloo) {
  if (HasGloo()) GTEST_SKIP() << "this build has Gloo";
  EXPECT_EQ(MakeGlooGroup({.rank = 0, .size = 2, .address = "127.0.0.1", .store = {}}).status().id(),
            "E-collective-backend");
}

}  // namespace
}  // namespace penstock::collective
