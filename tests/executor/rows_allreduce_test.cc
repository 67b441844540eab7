// c_allreduce_sum of selected rows: gathers rows or reduces a dense tensor, whichever has fewer bytes; both
// give the same values.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "executor/schedule/executor.h"
#include "framework/text/parser.h"
#include "operators/all_ops.h"
#include "operators/collective/rows_exchange.h"
#include "tests/support/thread_rings.h"

namespace penstock {
namespace {

using test::OnThreads;
using test::ThreadRings;

constexpr Dim kWidth = 3;

// A group that counts its reductions.
class CountingGroup : public CollectiveGroup {
 public:
  explicit CountingGroup(CollectiveGroup& of) : of_(of) {}
  int reductions = 0;

  int rank() const override { return of_.rank(); }
  int size() const override { return of_.size(); }
  std::string_view backend() const override { return of_.backend(); }
  bool adds_in_rank_order() const override { return of_.adds_in_rank_order(); }
  Completion AllReduce(Elements data, Reduction how, const CollectiveOptions& options) override {
    ++reductions;
    return of_.AllReduce(data, how, options);
  }
  Completion ReduceScatter(ConstElements in, Elements out, Reduction how,
                           const CollectiveOptions& options) override {
    return of_.ReduceScatter(in, out, how, options);
  }
  Completion AllGather(ConstElements in, std::span<const std::int64_t> counts, Elements out,
                       const CollectiveOptions& options) override {
    return of_.AllGather(in, counts, out, options);
  }
  Completion Broadcast(Elements data, int root, const CollectiveOptions& options) override {
    return of_.Broadcast(data, root, options);
  }
  Completion Reduce(Elements data, Reduction how, int root, const CollectiveOptions& options) override {
    return of_.Reduce(data, how, root, options);
  }
  Completion Barrier(const CollectiveOptions& options) override { return of_.Barrier(options); }
  Completion SendRecv(ConstElements out, int to, Elements in, int from,
                      const CollectiveOptions& options) override {
    return of_.SendRecv(out, to, in, from, options);
  }
  Completion Send(ConstElements out, int to, const CollectiveOptions& options) override {
    return of_.Send(out, to, options);
  }
  Completion Recv(Elements in, int from, const CollectiveOptions& options) override {
    return of_.Recv(in, from, options);
  }
  std::optional<Running> running() const override { return of_.running(); }
  void Abort(const Status& why) override { of_.Abort(why); }

 private:
  CollectiveGroup& of_;
};

class CountingRings : public CollectiveRings {
 public:
  explicit CountingRings(ThreadRings& of) : of_(of), group(**of.Ring(0)) {}
  Status Join(const std::vector<std::string>& addresses, int rank) override {
    return of_.Join(addresses, rank);
  }
  Status MakeRing(int, int) override { return OkStatus(); }
  Status MakeOwnRing(int) override { return OkStatus(); }
  Status Begin(const Program&, int, std::string_view) override { return OkStatus(); }
  Result<CollectiveGroup*> Ring(int) override { return &group; }

 protected:
  void AbortAll(const Status& why) override { group.Abort(why); }
  void AbortRing(int, const Status& why) override { group.Abort(why); }

 private:
  ThreadRings& of_;

 public:
  CountingGroup group;
};

// `count` rows below `below` for one rank: unordered, with repeats, and with -0 among the values.
SelectedRows RowsOf(int rank, std::int64_t count, std::int64_t below, std::int64_t height) {
  std::mt19937 random(static_cast<unsigned>(rank + 1));
  std::uniform_real_distribution<float> real(-3, 3);
  SelectedRows out;
  out.height = height;
  for (std::int64_t i = 0; i < count; ++i)
    out.rows.push_back(i < below ? below - 1 - i : static_cast<std::int64_t>(random()) % below);
  out.ResetValue(DType::kFp32, {static_cast<Dim>(count), kWidth});
  for (float& value : out.value.Span<float>()) value = random() % 8 == 0 ? -0.0f : real(random);
  return out;
}

using Rows = std::map<std::int64_t, std::vector<float>>;

void AddTo(Rows& sums, std::int64_t row, const float* values) {
  const auto [at, first] = sums.emplace(row, std::vector<float>(values, values + kWidth));
  for (std::size_t i = 0; !first && i < kWidth; ++i) at->second[i] += values[i];
}

// The sum as one process computes it.
Rows AddedInRankOrder(const std::vector<SelectedRows>& ranks) {
  Rows all;
  for (const SelectedRows& rank : ranks) {
    Rows own;
    for (std::size_t i = 0; i < rank.rows.size(); ++i)
      AddTo(own, rank.rows[i], rank.value.Data<float>() + i * kWidth);
    for (const auto& [row, values] : own) AddTo(all, row, values.data());
  }
  return all;
}

// Rank r has counts[r] rows below `below`, of `height`.
void ExpectSum(const std::vector<std::int64_t>& counts, std::int64_t below, std::int64_t height, bool dense) {
  const int ranks = static_cast<int>(counts.size());
  SCOPED_TRACE(StrCat(ranks, " ranks, height ", height, ", ", below, " rows"));
  std::vector<SelectedRows> given;
  std::int64_t distinct = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::int64_t count = counts[static_cast<std::size_t>(rank)];
    given.push_back(RowsOf(rank, count, below, height));
    distinct += std::min(count, below);
  }
  EXPECT_EQ(GatheringCostsMore(distinct, height, kWidth * sizeof(float)), dense);
  const Rows expected = AddedInRankOrder(given);
  OnThreads(ranks, [&](ThreadRings& of) {
    CountingRings rings(of);
    Scope scope;
    auto& rows = scope.FindOrCreate("g")->As<SelectedRows>();
    const SelectedRows& own = given[static_cast<std::size_t>(rings.group.rank())];
    rows.rows = own.rows;
    rows.height = own.height;
    rows.ResetValue(DType::kFp32, own.value.shape());
    if (!own.rows.empty()) rows.value.CopyFrom(own.value);
    const std::string type = StrCat("rows<f32[", height, ", 3]>");
    const Result<Program> program = ParseText(
        StrCat("program\nblock 0 {\n  persist g : ", type, "\n  g = c_allreduce_sum(X=g)\n}\n"), "test");
    exec::Executor executor(AllOps(), {.threads = 1, .rings = &rings});
    const Status status = executor.Run(*program, scope, {}, {}).status();
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(rings.group.reductions, dense ? 2 : 0);
    EXPECT_EQ(rows.height, height);
    ASSERT_EQ(rows.rows.size(), expected.size());
    const float* values = rows.value.Data<float>();
    std::size_t at = 0;
    for (const auto& [row, sum] : expected) {
      EXPECT_EQ(rows.rows[at++], row);
      EXPECT_EQ(std::memcmp(values, sum.data(), kWidth * sizeof(float)), 0) << "row " << row;
      values += kWidth;
    }
  });
}

TEST(RowsAllreduce, GathersFewRows) {
  ExpectSum({5, 3}, 4, 10, false);
  ExpectSum({9, 0, 7, 30}, 10, 100, false);
  ExpectSum({0, 0}, 1, 10, false);
}

// With rows of 12 bytes: 20 R > 26 H.
TEST(RowsAllreduce, ReducesADenseTensorIfSmaller) {
  ExpectSum({14, 12, 11, 0}, 10, 10, true);
  ExpectSum({8, 8, 9, 20}, 8, 10, true);
}

TEST(RowsAllreduce, ChoosesByTheDistinctRowsOfAllRanks) {
  ExpectSum({13, 13}, 13, 20, false);        // 520 bytes to gather, 520 to reduce
  ExpectSum({13, 13, 1}, 13, 20, true);      // one row more
  ExpectSum({100, 100, 100}, 6, 20, false);  // they have 18 distinct rows
  EXPECT_FALSE(GatheringCostsMore(0, 0, 0));
  EXPECT_TRUE(GatheringCostsMore(std::int64_t{1} << 62, 1, std::int64_t{1} << 40));
}

}  // namespace
}  // namespace penstock
