// Hierarchies of groups of threads: an inner group for each host, and an outer group of their leaders.
#include "executor/collective/hierarchy/hierarchy.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <functional>
#include <thread>
#include <utility>

#include "executor/collective/arena/threads.h"
#include "tests/unit/collective/all_operations.h"

namespace penstock::collective {
namespace {

using Hosts = std::vector<std::vector<int>>;
using Groups = std::vector<std::unique_ptr<CollectiveGroup>>;

Groups ThreadGroups(std::size_t ranks, const RankNames& names = {},
                    Nanoseconds report_after = observe::kReportAfter) {
  Result<Groups> groups = MakeThreadGroups(static_cast<int>(ranks), report_after, names);
  EXPECT_TRUE(groups.ok()) << groups.status().ToString();
  return std::move(groups).value();
}

Groups MakeGroups(const Hosts& hosts, Nanoseconds report_after = observe::kReportAfter) {
  RankNames leaders;
  std::size_t ranks = 0;
  for (const std::vector<int>& host : hosts) {
    leaders.of_ranks.push_back(host.front());
    ranks += host.size();
  }
  Groups groups(ranks), outer = ThreadGroups(hosts.size(), leaders, report_after);
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    Groups inner = ThreadGroups(hosts[host].size(), {hosts[host]}, report_after);
    for (std::size_t local = 0; local < hosts[host].size(); ++local) {
      Result<std::unique_ptr<CollectiveGroup>> group =
          MakeHierarchicalGroup({.rank = hosts[host][local],
                                 .hosts = hosts,
                                 .inner = std::move(inner[local]),
                                 .outer = local == 0 ? std::move(outer[host]) : nullptr});
      EXPECT_TRUE(group.ok()) << group.status().ToString();
      groups[static_cast<std::size_t>(hosts[host][local])] = std::move(group).value();
    }
  }
  return groups;
}

void OnEachRank(Groups& groups, const std::function<void(CollectiveGroup&)>& call) {
  std::vector<std::thread> threads;
  for (const auto& group : groups) threads.emplace_back([&call, &group] { call(*group); });
  for (std::thread& thread : threads) thread.join();
}

// Without messages, which not all of these ranks support.
std::string FirstDifferenceOfCollectives(CollectiveGroup& group, std::uint64_t seed) {
  return FirstDifferenceOfRandom(group, seed, 60, false);
}

TEST(HierarchicalGroups, MatchOneGroupOfAllRanks) {
  for (const Hosts& hosts :
       {Hosts{{0}}, Hosts{{0, 1}}, Hosts{{0, 1}, {2, 3}}, Hosts{{0, 2, 4}, {1, 3}}, Hosts{{1, 0}, {2}}}) {
    Groups groups = MakeGroups(hosts);
    OnEachRank(groups, [](CollectiveGroup& group) { EXPECT_EQ(FirstDifferenceOfCollectives(group, 3), ""); });
  }
}

TEST(HierarchicalGroups, AddInRankOrderOnOneHostOrOneRankPerHost) {
  EXPECT_TRUE(MakeGroups({{0, 1, 2}})[0]->adds_in_rank_order());
  EXPECT_TRUE(MakeGroups({{0}, {1}, {2}})[2]->adds_in_rank_order());
  EXPECT_FALSE(MakeGroups({{0, 1}, {2, 3}})[0]->adds_in_rank_order());
  EXPECT_FALSE(MakeGroups({{1, 0}})[0]->adds_in_rank_order());
}

TEST(HierarchicalGroups, AllRanksReportMismatchedOperations) {
  Groups groups = MakeGroups({{0, 1}, {2, 3}});
  OnEachRank(groups, [](CollectiveGroup& group) {
    std::string data(400, 'x');
    const Status status = group
                              .AllReduce(ElementsOf(data, ElementType::kFp32),
                                         group.rank() == 3 ? Reduction::kMean : Reduction::kSum)
                              .Wait();
    EXPECT_EQ(status.id(), "E-collective-mismatch");
    EXPECT_EQ(status.message(),
              "ranks 0 and 3 started different operations: rank 0 all_reduce 1 (sum of 100 f32, 400 bytes), "
              "rank 3 all_reduce 1 (mean of 100 f32, 400 bytes)");
  });
}

TEST(HierarchicalGroups, AllRanksReportTheCauseOfAnAbort) {
  Groups groups = MakeGroups({{0, 1}, {2, 3}});
  std::vector<Completion> waits;
  for (const int rank : {0, 1, 2}) waits.push_back(groups[static_cast<std::size_t>(rank)]->Barrier());
  groups[3]->Abort(DataLoss("E-test", "its data is at an end"));
  for (const Completion& wait : waits) {
    const Status status = wait.Wait();
    EXPECT_EQ(status.id(), "E-collective-peer-left");
    EXPECT_NE(
        status.message().find("among ranks 2, 3 of a host: rank 3 has left the group: its data is at an "
                              "end"),
        std::string::npos)
        << status.message();
  }
}

// Rank 3 comes when its host's leader has said that it waits, and rank 0 comes last.
TEST(HierarchicalGroups, ReportLongWaitsWithGlobalRanks) {
  Groups groups = MakeGroups({{0, 1}, {2, 3}}, std::chrono::milliseconds(1));
  testing::internal::CaptureStderr();
  std::vector<Completion> waits;
  const auto start = [&](int rank) {
    waits.push_back(groups[static_cast<std::size_t>(rank)]->Barrier({.label = "the end"}));
  };
  std::string log;
  const auto is_reported = [&](const char* awaited) {
    for (int looks = 0; looks < 600; ++looks) {  // a report is repeated at each doubling of the time
      log += testing::internal::GetCapturedStderr();
      testing::internal::CaptureStderr();
      if (log.find(StrCat("barrier 1 (the end)) ", awaited)) != std::string::npos) return true;
      poll(nullptr, 0, 100);
    }
    return false;
  };
  start(2);
  EXPECT_TRUE(is_reported("of rank 2 for rank 3")) << log;
  start(3);
  EXPECT_TRUE(is_reported("of rank 2 for rank 0")) << log;
  start(0);
  start(1);
  for (const Completion& wait : waits) EXPECT_TRUE(wait.Wait().ok());
  testing::internal::GetCapturedStderr();
}

TEST(HierarchicalGroups, PassMessagesWithinAHostAndBetweenLeaders) {
  Groups groups = MakeGroups({{0, 1}, {2, 3}});
  // Around 1 -> 0 -> 2 -> 3.
  OnEachRank(groups, [](CollectiveGroup& group) {
    std::string out(8, static_cast<char>('0' + group.rank())), in(8, ' ');
    const Elements sent = ElementsOf(out, ElementType::kUInt8), got = ElementsOf(in, ElementType::kUInt8);
    const int rank = group.rank();
    const Status status = (rank == 1   ? group.Send(sent, 0)
                           : rank == 0 ? group.SendRecv(sent, 2, got, 1)
                           : rank == 2 ? group.SendRecv(sent, 3, got, 0)
                                       : group.Recv(got, 2))
                              .Wait();
    EXPECT_TRUE(status.ok()) << status.ToString();
    const std::string from = rank == 0 ? "11111111" : rank == 2 ? "00000000" : rank == 3 ? "22222222" : in;
    EXPECT_EQ(in, from);
    std::string data(8, 'x');
    if (rank == 1) {
      EXPECT_EQ(group.Send(ElementsOf(data, ElementType::kUInt8), 3).Wait().id(), "E-collective-route");
    }
    EXPECT_TRUE(group.Barrier().Wait().ok());  // a rejected call does not end the group
  });
}

TEST(HierarchicalGroups, ReportMessageMismatchesWithGlobalRanks) {
  Groups groups = MakeGroups({{0, 1}, {2, 3}});
  std::string out(8, 'x'), in(4, ' ');
  const Completion sent = groups[2]->Send(ElementsOf(out, ElementType::kUInt8), 3);
  const Status status = groups[3]->Recv(ElementsOf(in, ElementType::kUInt8), 2).Wait();
  EXPECT_EQ(status.id(), "E-collective-mismatch");
  EXPECT_NE(status.message().find("rank 2 sends message from rank 2 to rank 3 (8 u8, 8 bytes), rank 3 "
                                  "receives message from rank 2 to rank 3 (4 u8, 4 bytes)"),
            std::string::npos)
      << status.message();
  static_cast<void>(sent.Wait());
}

TEST(HierarchicalGroups, RefuseInconsistentGroups) {
  Groups two = ThreadGroups(2), one = ThreadGroups(1);
  const auto id_of = [](Hierarchy hierarchy) {
    return MakeHierarchicalGroup(std::move(hierarchy)).status().id();
  };
  EXPECT_EQ(id_of({.rank = 0, .hosts = {{0, 2}}, .inner = nullptr, .outer = nullptr}), "E-collective-size");
  EXPECT_EQ(id_of({.rank = 2, .hosts = {{0, 1}}, .inner = nullptr, .outer = nullptr}), "E-collective-size");
  EXPECT_EQ(id_of({.rank = 0, .hosts = {{0}, {}}, .inner = nullptr, .outer = nullptr}), "E-collective-size");
  EXPECT_EQ(id_of({.rank = 0, .hosts = {{0, 1}}, .inner = std::move(one[0]), .outer = nullptr}),
            "E-collective-size");
  EXPECT_EQ(id_of({.rank = 0, .hosts = {{0, 1}}, .inner = std::move(two[0]), .outer = nullptr}),
            "E-collective-size");
}

}  // namespace
}  // namespace penstock::collective
