// The operations of ring_backend.h and hierarchy.h on the simulated network, with ranks that are slow, fast,
// or die.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <random>
#include <utility>

#include "executor/collective/group/queued_group.h"
#include "executor/collective/ring/ring_backend.h"
#include "tests/sim/rank_groups.h"
#include "tests/sim/rank_network.h"
#include "tests/sim/seeds.h"

namespace penstock::collective {
namespace {

using test::FlatGroup;
using test::GivenBy;
using test::Group;
using test::HierarchyOf;
using test::kHosts;
using test::MakeGroup;
using test::RankNetwork;
using test::RanksOf;

constexpr int kOperations = 12;

struct RankResult {
  Status status;
  int done = 0;
  std::string wrong;
};

// One operation, chosen by the seed; the same on all ranks.
class Script {
 public:
  Script(std::uint64_t seed, int ranks) : random_(seed), ranks_(ranks) {}

  Status Next(CollectiveGroup& group, std::string& wrong) {
    const int root = static_cast<int>(random_() % static_cast<std::uint64_t>(ranks_));
    const auto count = static_cast<std::int64_t>(random_() % 40);
    const CollectiveOptions options{.label = "step", .blocking = true};
    std::vector<std::int64_t> values = ValuesFrom(count, GivenBy(group.rank()));
    const Elements data = Of(values);
    std::int64_t sum = 0;
    for (int rank = 0; rank < ranks_; ++rank) sum += GivenBy(rank);
    switch (random_() % 6) {
      case 0:
        return Check(group.Barrier(options), values, GivenBy(group.rank()), wrong);
      case 1:
        return Check(group.Broadcast(data, root, options), values, GivenBy(root), wrong);
      case 2:
        return Check(group.Reduce(data, Reduction::kSum, root, options), values,
                     group.rank() == root ? sum : GivenBy(group.rank()), wrong);
      case 3: {
        std::vector<std::int64_t> all(static_cast<std::size_t>(count * ranks_));
        const Status status = group.AllGatherEqual(data, Of(all), options).Wait();
        for (std::size_t i = 0; status.ok() && i < all.size(); ++i) {
          const auto each = static_cast<std::size_t>(count);
          if (all[i] != GivenBy(static_cast<int>(i / each)) * FactorOf(i % each)) wrong = "all_gather";
        }
        return status;
      }
      case 4: {
        std::vector<std::int64_t> all = ValuesFrom(count * ranks_, GivenBy(group.rank()));
        const auto begin = static_cast<std::size_t>(count) * static_cast<std::size_t>(group.rank());
        return Check(group.ReduceScatter(Of(all), data, Reduction::kSum, options), values, sum, wrong, begin);
      }
      default:
        return Check(group.AllReduce(data, Reduction::kSum, options), values, sum, wrong);
    }
  }

 private:
  static Elements Of(std::vector<std::int64_t>& values) {
    return {reinterpret_cast<std::byte*>(values.data()), static_cast<std::int64_t>(values.size()),
            ElementType::kInt64};
  }
  // Neighbouring elements differ, so that a misplaced piece shows.
  static std::int64_t FactorOf(std::size_t i) { return static_cast<std::int64_t>(i % 7 + 1); }
  static std::vector<std::int64_t> ValuesFrom(std::int64_t count, std::int64_t first) {
    std::vector<std::int64_t> values;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) values.push_back(first * FactorOf(i));
    return values;
  }
  // first: the expected value of an element with factor 1. begin: the index of values[0] in the whole.
  static Status Check(const Completion& done, const std::vector<std::int64_t>& values, std::int64_t first,
                      std::string& wrong, std::size_t begin = 0) {
    const Status status = done.Wait();
    for (std::size_t i = 0; status.ok() && i < values.size(); ++i) {
      const std::int64_t expected = first * FactorOf(begin + i);
      if (values[i] != expected) wrong = StrCat("got ", values[i], ", expected ", expected);
    }
    return status;
  }

  std::mt19937_64 random_;
  const int ranks_;
};

std::vector<RankResult> RunJob(RankNetwork& net, std::uint64_t seed, int ranks, const MakeGroup& make) {
  std::vector<RankResult> results(static_cast<std::size_t>(ranks));
  const bool ended = net.RunAll([&](int rank) {
    RankResult& mine = results[static_cast<std::size_t>(rank)];
    const Group group = make(net, rank);
    Script script(seed, ranks);
    for (; mine.done < kOperations && mine.status.ok(); ++mine.done)
      mine.status = script.Next(*group, mine.wrong);
  });
  EXPECT_TRUE(ended) << "ranks hang";
  return results;
}

void ExpectNobodyHangsOrErrs(std::uint64_t seed, int ranks, std::optional<int> killed,
                             const MakeGroup& make) {
  SCOPED_TRACE(StrCat("seed ", seed, ", ", ranks, " ranks"));
  RankNetwork net(seed, ranks);
  if (killed) net.KillAt(*killed, Nanoseconds(1'000'000 * static_cast<std::int64_t>(net.Random(1500))));
  const std::vector<RankResult> results = RunJob(net, seed, ranks, make);
  for (int rank = 0; rank < ranks; ++rank) {
    const RankResult& result = results[static_cast<std::size_t>(rank)];
    if (net.dead(rank)) continue;
    EXPECT_EQ(result.wrong, "") << "rank " << rank;
    if (result.status.ok()) continue;
    ASSERT_TRUE(killed && net.dead(*killed)) << "rank " << rank << ": " << result.status.ToString();
    EXPECT_EQ(result.status.code(), StatusCode::kUnavailable);
    EXPECT_NE(result.status.message().find(" is gone: "), std::string::npos) << result.status.ToString();
  }
}

TEST(SimulatedRings, SumsDoNotDependOnDelays) {
  for (std::uint64_t seed = 1; seed <= test::SeedCount(); ++seed) {
    const int ranks = 1 + static_cast<int>(seed % 6);
    ExpectNobodyHangsOrErrs(seed, ranks, std::nullopt,
                            [&](RankNetwork& net, int rank) { return FlatGroup(net, rank, ranks, seed); });
    if (testing::Test::HasFailure()) return;
  }
}

TEST(SimulatedRings, AllRanksNameTheDeadRank) {
  for (std::uint64_t seed = 1; seed <= test::SeedCount(); ++seed) {
    const int ranks = 2 + static_cast<int>(seed % 5);
    const int killed = static_cast<int>(seed / 7 % static_cast<std::uint64_t>(ranks));
    ExpectNobodyHangsOrErrs(seed, ranks, killed,
                            [&](RankNetwork& net, int rank) { return FlatGroup(net, rank, ranks, seed); });
    if (testing::Test::HasFailure()) return;
  }
}

// If one rank starts another operation, all ranks get an error, and no data has changed.
TEST(SimulatedRings, AllRanksReportADisagreement) {
  for (std::uint64_t seed = 1; seed <= test::SeedCount(); ++seed) {
    SCOPED_TRACE(StrCat("seed ", seed));
    const int ranks = 2 + static_cast<int>(seed % 5);
    const int other = static_cast<int>(seed / 3 % static_cast<std::uint64_t>(ranks));
    RankNetwork net(seed, ranks);
    std::vector<std::string> wrong(static_cast<std::size_t>(ranks));
    const bool ended = net.RunAll([&](int rank) {
      const Group group = FlatGroup(net, rank, ranks, seed);
      std::vector<std::int64_t> values(rank == other ? 40 + seed % 60 : 30u, rank);
      const std::vector<std::int64_t> before = values;
      const Elements data{reinterpret_cast<std::byte*>(values.data()),
                          static_cast<std::int64_t>(values.size()), ElementType::kInt64};
      const CollectiveOptions blocking{.blocking = true};
      const Status status = rank == other && seed % 2 == 0
                                ? group->Broadcast(data, other, blocking).Wait()
                                : group->AllReduce(data, Reduction::kSum, blocking).Wait();
      if (status.id() != "E-collective-mismatch") wrong[static_cast<std::size_t>(rank)] = status.ToString();
      if (values != before) wrong[static_cast<std::size_t>(rank)] += "its data has changed";
    });
    EXPECT_TRUE(ended) << "ranks hang";
    for (const std::string& text : wrong) EXPECT_EQ(text, "");
    if (testing::Test::HasFailure()) return;
  }
}

// Links that count what they send.
class CountedLinks : public Links {
 public:
  CountedLinks(std::unique_ptr<Links> links, int& sent) : links_(std::move(links)), sent_(sent) {}

  int rank() const override { return links_->rank(); }
  int size() const override { return links_->size(); }
  std::unique_ptr<Transit> Send(int to, Channel channel, std::span<const std::byte> bytes) override {
    ++sent_;
    return links_->Send(to, channel, bytes);
  }
  std::unique_ptr<Transit> Receive(int from, Channel channel, std::span<std::byte> bytes) override {
    return links_->Receive(from, channel, bytes);
  }
  void Listen(NoticeHandler handler) override { links_->Listen(std::move(handler)); }
  void Tell(int to, const Notice& notice) override { links_->Tell(to, notice); }
  void Interrupt() override { links_->Interrupt(); }
  void Linger(const std::function<bool()>& heard) override { links_->Linger(heard); }
  void Close() override { links_->Close(); }

 private:
  const std::unique_ptr<Links> links_;
  int& sent_;
};

// The messages that rank 0 sends for an all_reduce of `count` elements.
int MessagesOfAllReduce(int ranks, std::int64_t count) {
  constexpr std::size_t kSmallBytes = 4096, kOnePiece = std::size_t{1} << 20;
  RankNetwork net(1, ranks);
  std::vector<int> members(static_cast<std::size_t>(ranks)), sent(members);
  std::iota(members.begin(), members.end(), 0);
  const bool ended = net.RunAll([&](int rank) {
    auto links = std::make_unique<CountedLinks>(net.LinksOf("ring", rank, members),
                                                sent[static_cast<std::size_t>(rank)]);
    QueuedGroup group(std::make_unique<RingBackend>(
        "sim", std::move(links),
        RingOptions{.report_after = Nanoseconds(0), .small_bytes = kSmallBytes, .piece_bytes = kOnePiece}));
    std::vector<std::int64_t> values(static_cast<std::size_t>(count));
    const Elements data{reinterpret_cast<std::byte*>(values.data()), count, ElementType::kInt64};
    EXPECT_TRUE(group.AllReduce(data, Reduction::kSum, {.blocking = true}).Wait().ok());
  });
  EXPECT_TRUE(ended);
  return sent[0];
}

TEST(SimulatedRings, SmallDataTravelsWithTheAgreement) {
  EXPECT_EQ(MessagesOfAllReduce(2, 8), 1);
  EXPECT_EQ(MessagesOfAllReduce(4, 8), 2);
  // An agreement; a piece to each other rank; a piece around the ring, once less than there are ranks.
  EXPECT_EQ(MessagesOfAllReduce(2, 1000), 1 + 1 + 1);
  EXPECT_EQ(MessagesOfAllReduce(4, 1000), 2 + 3 + 3);
}

// Messages that a rank of another version may send.
TEST(SimulatedRings, RefuseAnUnreadableAgreement) {
  RankNetwork net(1, 2);
  Status status;
  const bool ended = net.RunAll([&](int rank) {
    if (rank == 0) {
      const Group group = FlatGroup(net, rank, 2, 1);
      status = group->Barrier({.blocking = true}).Wait();
      return;
    }
    const auto links = net.LinksOf("ring", rank, {0, 1});
    links->Listen([](int, const Notice&) {});
    const std::vector<std::byte> nonsense(200, std::byte{0xff});
    const auto sent = links->Send(0, Channel::kAgreement, nonsense);
    static_cast<void>(sent->Wait());
  });
  EXPECT_TRUE(ended);
  EXPECT_EQ(status.id(), "E-collective-mismatch");
  EXPECT_NE(status.message().find("rank 1 does not say what it starts"), std::string::npos)
      << status.ToString();
}

TEST(SimulatedRings, RefuseDataOfADifferentSizeLimit) {
  RankNetwork net(1, 2);
  std::vector<Status> results(2);
  const bool ended = net.RunAll([&](int rank) {
    const RingOptions options{.report_after = Nanoseconds(0), .small_bytes = rank == 0 ? 4096u : 8u};
    QueuedGroup group(std::make_unique<RingBackend>("sim", net.LinksOf("ring", rank, {0, 1}), options));
    std::int64_t values[2] = {1, 2};
    results[static_cast<std::size_t>(rank)] =
        group
            .AllReduce({reinterpret_cast<std::byte*>(values), 2, ElementType::kInt64}, Reduction::kSum,
                       {.blocking = true})
            .Wait();
  });
  EXPECT_TRUE(ended);
  for (const Status& status : results) EXPECT_EQ(status.id(), "E-collective-mismatch") << status.ToString();
  EXPECT_NE(results[0].message().find("rank 1 gives 0 bytes to all_reduce 1"), std::string::npos)
      << results[0].ToString();
}

TEST(SimulatedHierarchies, SumsDoNotDependOnDelays) {
  for (std::uint64_t seed = 1; seed <= test::SeedCount(); ++seed) {
    const auto& hosts = kHosts[seed % std::size(kHosts)];
    ExpectNobodyHangsOrErrs(seed, RanksOf(hosts), std::nullopt,
                            [&](RankNetwork& net, int rank) { return HierarchyOf(net, rank, hosts, seed); });
    if (testing::Test::HasFailure()) return;
  }
}

TEST(SimulatedHierarchies, AllRanksNameTheDeadRank) {
  for (std::uint64_t seed = 1; seed <= test::SeedCount(); ++seed) {
    const auto& hosts = kHosts[seed % std::size(kHosts)];
    const int ranks = RanksOf(hosts);
    const int killed = static_cast<int>(seed / 5 % static_cast<std::uint64_t>(ranks));
    ExpectNobodyHangsOrErrs(seed, ranks, killed,
                            [&](RankNetwork& net, int rank) { return HierarchyOf(net, rank, hosts, seed); });
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace penstock::collective
