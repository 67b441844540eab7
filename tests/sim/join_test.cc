// Ranks with different numbers of batches, on the simulated network: a rank without batches joins until all
// have ended (framework/runtime/uneven_steps.h), on rings and hierarchies, with ranks that are slow, fast, or
// die.
#include <gtest/gtest.h>

#include <numeric>
#include <optional>
#include <random>

#include "framework/runtime/uneven_steps.h"
#include "tests/sim/rank_groups.h"
#include "tests/sim/rank_network.h"
#include "tests/sim/seeds.h"

namespace penstock::collective {
namespace {

using test::RankNetwork;

// The number of examples in each batch of each rank, which has zero to five batches.
using Plan = std::vector<std::vector<std::int64_t>>;

Plan PlanOf(std::uint64_t seed, int ranks) {
  std::mt19937_64 random(seed * 31 + 7);
  Plan plan(static_cast<std::size_t>(ranks));
  for (auto& batches : plan) {
    batches.resize(random() % 6);
    for (std::int64_t& examples : batches) examples = 1 + static_cast<std::int64_t>(random() % 9);
  }
  return plan;
}

std::size_t StepsOf(const Plan& plan) {
  std::size_t steps = 0;
  for (const auto& batches : plan) steps = std::max(steps, batches.size());
  return steps;
}

// The examples of rank `rank` in step `step`; 0 after it has ended.
std::int64_t ExamplesOf(const Plan& plan, int rank, std::size_t step) {
  const auto& batches = plan[static_cast<std::size_t>(rank)];
  return step < batches.size() ? batches[step] : 0;
}

struct JoinResult {
  Status status;
  std::size_t steps = 0;
  std::string wrong;
};

// The training of one rank: which ranks have a batch; the count of all examples; a sum to which a rank with n
// examples adds n * 10^rank, which reveals a rank that is missing or added twice.
class JoiningRank {
 public:
  JoiningRank(CollectiveGroup& group, const Plan& plan, JoinResult& mine)
      : group_(group), plan_(plan), mine_(mine) {}

  Status Train() {
    while (true) {
      PENSTOCK_ASSIGN_OR_RETURN(const StepOfRank step, NextStep());
      if (step == StepOfRank::kEnd) return OkStatus();
      const std::int64_t own = ExamplesOf(plan_, group_.rank(), mine_.steps);
      if ((step == StepOfRank::kOwnBatch) != (own > 0)) mine_.wrong = "a rank is taken for another";
      // A rank that joins repeats a batch of 7 examples, which do not count.
      const std::int64_t counted = step == StepOfRank::kOwnBatch ? own : 0;
      std::int64_t all = counted, sum = counted * test::GivenBy(group_.rank());
      PENSTOCK_RETURN_IF_ERROR(Add(all));
      PENSTOCK_RETURN_IF_ERROR(Add(sum));
      Check(all, sum, counted);
      ++mine_.steps;
    }
  }

 private:
  Result<StepOfRank> NextStep() {
    const bool has = ExamplesOf(plan_, group_.rank(), mine_.steps) > 0;
    SaidOfStep own{.has_batch = has ? 1 : 0};
    std::vector<SaidOfStep> said(static_cast<std::size_t>(group_.size()));
    PENSTOCK_RETURN_IF_ERROR(
        group_.AllGatherEqual(Words(&own, 1), Words(said.data(), said.size()), options_).Wait());
    return JudgeStep(said, group_.rank(), static_cast<std::int64_t>(mine_.steps));
  }
  Status Add(std::int64_t& value) {
    return group_
        .AllReduce({reinterpret_cast<std::byte*>(&value), 1, ElementType::kInt64}, Reduction::kSum, options_)
        .Wait();
  }
  void Check(std::int64_t all, std::int64_t sum, std::int64_t counted) {
    std::int64_t expected_all = 0, expected = 0;
    for (int rank = 0; rank < group_.size(); ++rank) {
      expected_all += ExamplesOf(plan_, rank, mine_.steps);
      expected += ExamplesOf(plan_, rank, mine_.steps) * test::GivenBy(rank);
    }
    if (all != expected_all) mine_.wrong = StrCat(all, " examples, expected ", expected_all);
    if (sum != expected) mine_.wrong = StrCat("the sum is ", sum, ", expected ", expected);
    const double share = ShareOfExamples(counted, all);
    if (share != static_cast<double>(counted) / static_cast<double>(expected_all)) mine_.wrong = "share";
  }
  static Elements Words(SaidOfStep* first, std::size_t count) {
    return {reinterpret_cast<std::byte*>(first), static_cast<std::int64_t>(2 * count), ElementType::kInt64};
  }

  CollectiveGroup& group_;
  const Plan& plan_;
  JoinResult& mine_;
  const CollectiveOptions options_{.label = "step", .blocking = true};
};

void ExpectAllEndTogether(std::uint64_t seed, int ranks, std::optional<int> killed,
                          const test::MakeGroup& make) {
  SCOPED_TRACE(StrCat("seed ", seed, ", ", ranks, " ranks"));
  const Plan plan = PlanOf(seed, ranks);
  RankNetwork net(seed, ranks);
  if (killed) net.KillAt(*killed, Nanoseconds(1'000'000 * static_cast<std::int64_t>(net.Random(600))));
  std::vector<JoinResult> results(static_cast<std::size_t>(ranks));
  const bool ended = net.RunAll([&](int rank) {
    JoinResult& mine = results[static_cast<std::size_t>(rank)];
    const auto group = make(net, rank);
    mine.status = JoiningRank(*group, plan, mine).Train();
  });
  EXPECT_TRUE(ended) << "ranks hang";
  for (int rank = 0; rank < ranks; ++rank) {
    const JoinResult& result = results[static_cast<std::size_t>(rank)];
    if (net.dead(rank)) continue;
    EXPECT_EQ(result.wrong, "") << "rank " << rank;
    if (result.status.ok()) {
      EXPECT_EQ(result.steps, StepsOf(plan)) << "rank " << rank;
      continue;
    }
    ASSERT_TRUE(killed && net.dead(*killed)) << "rank " << rank << ": " << result.status.ToString();
    EXPECT_EQ(result.status.code(), StatusCode::kUnavailable);
    EXPECT_NE(result.status.message().find(" is gone: "), std::string::npos) << result.status.ToString();
  }
}

TEST(SimulatedJoins, RingsEndAfterTheSameStepForAnyDelays) {
  for (std::uint64_t seed = 1; seed <= test::SeedCount(); ++seed) {
    const int ranks = 1 + static_cast<int>(seed % 6);
    ExpectAllEndTogether(seed, ranks, std::nullopt,
                         [&](RankNetwork& net, int rank) { return test::FlatGroup(net, rank, ranks, seed); });
    if (testing::Test::HasFailure()) return;
  }
}

TEST(SimulatedJoins, RingsNameTheDeadRankOnAllRanks) {
  for (std::uint64_t seed = 1; seed <= test::SeedCount(); ++seed) {
    const int ranks = 2 + static_cast<int>(seed % 5);
    const int killed = static_cast<int>(seed / 7 % static_cast<std::uint64_t>(ranks));
    ExpectAllEndTogether(seed, ranks, killed,
                         [&](RankNetwork& net, int rank) { return test::FlatGroup(net, rank, ranks, seed); });
    if (testing::Test::HasFailure()) return;
  }
}

TEST(SimulatedJoins, HierarchiesEndTogetherOrNameTheDeadRank) {
  for (std::uint64_t seed = 1; seed <= test::SeedCount(); ++seed) {
    const auto& hosts = test::kHosts[seed % std::size(test::kHosts)];
    const int ranks = test::RanksOf(hosts);
    const std::optional<int> killed =
        seed % 2 == 0 ? std::optional<int>(static_cast<int>(seed / 5 % static_cast<std::uint64_t>(ranks)))
                      : std::nullopt;
    ExpectAllEndTogether(seed, ranks, killed, [&](RankNetwork& net, int rank) {
      return test::HierarchyOf(net, rank, hosts, seed);
    });
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace penstock::collective
