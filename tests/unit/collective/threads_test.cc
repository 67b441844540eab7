// Groups of threads: values, order, and the errors that each rank gets after a failure.
#include "executor/collective/arena/threads.h"

#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <utility>

#include "tests/unit/collective/all_operations.h"

namespace penstock::collective {
namespace {

using Groups = std::vector<std::unique_ptr<CollectiveGroup>>;

Groups MakeGroups(int ranks) {
  Result<Groups> groups = MakeThreadGroups(ranks);
  EXPECT_TRUE(groups.ok()) << groups.status().ToString();
  return std::move(groups).value();
}

// Runs each rank on its own thread.
void OnEachRank(Groups& groups, const std::function<void(CollectiveGroup&)>& call) {
  std::vector<std::thread> threads;
  for (const auto& group : groups) threads.emplace_back([&call, &group] { call(*group); });
  for (std::thread& thread : threads) thread.join();
}

TEST(ThreadGroups, EqualSummationInRankOrder) {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    Groups groups = MakeGroups(ranks);
    OnEachRank(groups, [](CollectiveGroup& group) { EXPECT_EQ(FirstDifference(group, 1), ""); });
  }
}

TEST(ThreadGroups, RandomOperationsAreDeterministic) {
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    Groups groups = MakeGroups(1 + static_cast<int>(seed % 4));
    OnEachRank(groups, [seed](CollectiveGroup& group) {
      EXPECT_EQ(FirstDifferenceOfRandom(group, seed, 40), "") << "seed " << seed;
    });
  }
}

TEST(ThreadGroups, RunConcurrently) {
  Groups first = MakeGroups(2), second = MakeGroups(2);
  std::thread other([&] {
    OnEachRank(second, [](CollectiveGroup& group) { EXPECT_EQ(FirstDifferenceOfRandom(group, 5, 40), ""); });
  });
  OnEachRank(first, [](CollectiveGroup& group) { EXPECT_EQ(FirstDifferenceOfRandom(group, 6, 40), ""); });
  other.join();
}

// Waits until `group` runs an operation in which a caller waits, or no longer runs one.
CollectiveGroup::Running RunningOf(const CollectiveGroup& group, bool blocks_caller) {
  std::optional<CollectiveGroup::Running> now;
  while (!now || now->blocks_caller != blocks_caller) {
    now = group.running();
    std::this_thread::yield();
  }
  return *now;
}

TEST(ThreadGroups, ReportTheRunningOperationAndWaits) {
  Groups groups = MakeGroups(2);
  CollectiveGroup &first = *groups[0], &second = *groups[1];
  EXPECT_FALSE(first.running());
  const Completion begun = first.Barrier({.label = "beside, train.py:7"});
  const CollectiveGroup::Running beside = RunningOf(first, false);
  EXPECT_EQ(beside.number, 1u);
  EXPECT_NE(beside.text.find("barrier 1"), std::string::npos) << beside.text;
  EXPECT_NE(beside.text.find("beside, train.py:7"), std::string::npos) << beside.text;
  EXPECT_TRUE(second.Barrier({.blocking = true}).Wait().ok());
  EXPECT_TRUE(begun.Wait().ok());

  std::thread waits([&] { EXPECT_TRUE(first.Barrier({.blocking = true}).Wait().ok()); });
  EXPECT_EQ(RunningOf(first, true).number, 2u);
  EXPECT_TRUE(second.Barrier({.blocking = true}).Wait().ok());
  waits.join();
  EXPECT_FALSE(first.running());
}

TEST(ThreadGroups, CallBackWithTheResult) {
  Groups groups = MakeGroups(2);
  OnEachRank(groups, [](CollectiveGroup& group) {
    float value = static_cast<float>(group.rank()) + 1, seen = 0;
    const Completion done =
        group.AllReduce({reinterpret_cast<std::byte*>(&value), 1, ElementType::kFp32}, Reduction::kSum);
    const Promise called;
    done.Then([&](const Status& status) {
      seen = value;
      called.Finish(status);
    });
    EXPECT_TRUE(called.completion().Wait().ok());
    EXPECT_EQ(seen, 3);
  });
}

TEST(ThreadGroups, AllRanksReportMismatchedOperations) {
  Groups groups = MakeGroups(3);
  OnEachRank(groups, [](CollectiveGroup& group) {
    std::vector<float> values(1000, 1);
    const auto data = [&](std::int64_t count) {
      return Elements{reinterpret_cast<std::byte*>(values.data()), count, ElementType::kFp32};
    };
    EXPECT_TRUE(group.AllReduce(data(8), Reduction::kSum).Wait().ok());
    const Status status =
        group.rank() == 2 ? group.Broadcast(data(10), 0, {.label = "b, train.py:7"}).Wait()
                          : group.AllReduce(data(1000), Reduction::kSum, {.label = "a, train.py:3"}).Wait();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(status.id(), "E-collective-mismatch");
    EXPECT_EQ(
        status.message(),
        "ranks 0 and 2 started different operations: rank 0 all_reduce 2 (sum of 1000 f32, 4000 bytes; a, "
        "train.py:3), rank 2 broadcast 2 (10 f32, 40 bytes from rank 0; b, train.py:7)");
    EXPECT_EQ(status.details().size(), 3u);
    EXPECT_EQ(group.Barrier().Wait().id(), "E-collective-mismatch");  // the first error stays
  });
}

TEST(ThreadGroups, ReportDifferentCounts) {
  Groups groups = MakeGroups(2);
  OnEachRank(groups, [](CollectiveGroup& group) {
    std::string in(4, 'x'), out(6, ' ');
    const std::vector<std::int64_t> counts =
        group.rank() == 0 ? std::vector<std::int64_t>{4, 2} : std::vector<std::int64_t>{2, 4};
    const Status status =
        group.AllGather(ElementsOf(in, ElementType::kInt8), counts, ElementsOf(out, ElementType::kInt8))
            .Wait();
    EXPECT_EQ(status.id(), "E-collective-mismatch");
    EXPECT_NE(status.message().find("other counts"), std::string::npos);
  });
}

TEST(ThreadGroups, BothEndsReportAMessageSizeMismatch) {
  Groups groups = MakeGroups(2);
  OnEachRank(groups, [](CollectiveGroup& group) {
    std::string data(group.rank() == 0 ? 1'000'000 : 10, 'x');
    const Elements elements = ElementsOf(data, ElementType::kUInt8);
    const Status status = (group.rank() == 0 ? group.Send(elements, 1) : group.Recv(elements, 0)).Wait();
    EXPECT_EQ(status.id(), "E-collective-mismatch");
    EXPECT_NE(status.message().find("rank 0 sends message from rank 0 to rank 1 (1000000 u8"),
              std::string::npos)
        << status.message();
  });
}

TEST(ThreadGroups, AnAbortEndsTheWaitsOfAllRanks) {
  Groups groups = MakeGroups(2);
  const Completion waits = groups[0]->Barrier();
  groups[0]->Abort(Cancelled("E-run-cancelled", "the user has stopped the run"));
  EXPECT_EQ(waits.Wait().id(), "E-run-cancelled");
  EXPECT_EQ(groups[0]->Barrier().Wait().id(), "E-run-cancelled");
  const Status other = groups[1]->Barrier().Wait();
  EXPECT_EQ(other.id(), "E-collective-peer-left");
  EXPECT_EQ(other.message(), "rank 0 has left the group: the user has stopped the run");
}

TEST(ThreadGroups, AreAbortedWhileAnotherRankWaits) {
  Groups groups = MakeGroups(3);
  const Completion first = groups[0]->Barrier(), second = groups[1]->Barrier();
  groups[2]->Abort(Cancelled("E-run-cancelled", "the user has stopped the run"));
  EXPECT_EQ(first.Wait().id(), "E-collective-peer-left");
  EXPECT_EQ(second.Wait().id(), "E-collective-peer-left");
}

TEST(ThreadGroups, ReportARankThatHasLeft) {
  Groups groups = MakeGroups(2);
  OnEachRank(groups, [](CollectiveGroup& group) { EXPECT_TRUE(group.Barrier().Wait().ok()); });
  groups[1].reset();
  const Status status = groups[0]->Barrier({.label = "the end"}).Wait();
  EXPECT_EQ(status.id(), "E-collective-peer-left");
  EXPECT_EQ(status.message(), "rank 1 has left the group: it takes no part in barrier 2 (the end)");
}

TEST(ThreadGroups, ContinueAfterAnInvalidOperation) {
  Groups groups = MakeGroups(1);
  CollectiveGroup& group = *groups[0];
  std::string bytes(8, 'x');
  const Elements data = ElementsOf(bytes, ElementType::kInt32);
  for (const Completion& refused :
       {group.AllReduce(data, Reduction::kMean), group.Broadcast(data, 1),
        group.Reduce(data, Reduction::kSum, -1), group.Send(data, 0), group.Recv(data, -1),
        group.SendRecv(data, -1, data, 0), group.AllReduce({nullptr, 1, ElementType::kFp32}, Reduction::kSum),
        group.AllGather(data, std::vector<std::int64_t>{1}, data),
        group.AllGather(data, std::vector<std::int64_t>{2, 0}, data),
        group.ReduceScatter(data, {data.data, 1, data.type}, Reduction::kSum),
        group.AllReduce({data.data + 1, 1, data.type}, Reduction::kSum)}) {
    EXPECT_EQ(refused.Wait().id(), "E-collective-argument");
  }
  EXPECT_TRUE(group.AllReduce(data, Reduction::kSum).Wait().ok());
  EXPECT_EQ(MakeThreadGroups(0).status().id(), "E-collective-size");
}

TEST(ThreadGroups, DocumentedOperationsWorkInPlace) {
  Groups groups = MakeGroups(2);
  OnEachRank(groups, [](CollectiveGroup& group) {
    const std::int64_t part = 100'000;
    const auto mine = [&](std::string& all) {
      return Elements{reinterpret_cast<std::byte*>(all.data()) + group.rank() * part * 4, part,
                      ElementType::kFp32};
    };
    std::string scattered = ValuesOf(ElementType::kFp32, part * 2, group.rank(), 3);
    const std::string sum = ReducedInOrder(ElementType::kFp32, Reduction::kSum, part * 2, 2, 3);
    EXPECT_TRUE(
        group.ReduceScatter(ElementsOf(scattered, ElementType::kFp32), mine(scattered), Reduction::kSum)
            .Wait()
            .ok());
    const auto begin = static_cast<std::size_t>(group.rank() * part * 4);
    EXPECT_EQ(scattered.substr(begin, static_cast<std::size_t>(part) * 4),
              sum.substr(begin, static_cast<std::size_t>(part) * 4));
    EXPECT_TRUE(group.AllGatherEqual(mine(scattered), ElementsOf(scattered, ElementType::kFp32)).Wait().ok());
    EXPECT_TRUE(scattered == sum);
  });
}

}  // namespace
}  // namespace penstock::collective
