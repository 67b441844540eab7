#include "tests/sim/rank_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "executor/collective/group/queued_group.h"
#include "executor/collective/hierarchy/hierarchy.h"
#include "executor/collective/ring/ring_backend.h"

namespace penstock::test {
namespace {

using namespace collective;

// The seed decides whether operations of some hundred bytes are sent with the agreement, and the size of
// pieces.
RingOptions OptionsOf(std::uint64_t seed) {
  constexpr std::size_t kSmall[] = {0, 600, std::size_t{128} << 10};
  return {.report_after = Nanoseconds(0), .small_bytes = kSmall[seed % 3], .piece_bytes = 24 + seed % 4 * 16};
}

Group RingOf(RankNetwork& net, const std::string& name, int rank, const std::vector<int>& members,
             std::uint64_t seed) {
  return std::make_unique<QueuedGroup>(
      std::make_unique<RingBackend>("sim", net.LinksOf(name, rank, members), OptionsOf(seed)));
}

}  // namespace

std::int64_t GivenBy(int rank) {
  std::int64_t given = 1;
  for (int i = 0; i < rank; ++i) given *= 10;
  return given;
}

Group FlatGroup(RankNetwork& net, int rank, int ranks, std::uint64_t seed) {
  std::vector<int> members;
  for (int each = 0; each < ranks; ++each) members.push_back(each);
  return RingOf(net, "ring", rank, members, seed);
}

Group HierarchyOf(RankNetwork& net, int rank, const std::vector<std::vector<int>>& hosts,
                  std::uint64_t seed) {
  Hierarchy hierarchy{.rank = rank, .hosts = hosts, .inner = nullptr, .outer = nullptr};
  std::vector<int> leaders;
  for (const std::vector<int>& host : hosts) leaders.push_back(host[0]);
  for (const std::vector<int>& host : hosts) {
    if (std::find(host.begin(), host.end(), rank) == host.end()) continue;
    hierarchy.inner = RingOf(net, StrCat("host ", host[0]), rank, host, seed);
    if (host[0] == rank) hierarchy.outer = RingOf(net, "leaders", rank, leaders, seed);
  }
  Result<Group> group = MakeHierarchicalGroup(std::move(hierarchy));
  EXPECT_TRUE(group.ok()) << group.status().ToString();
  return std::move(group).value();
}

int RanksOf(const std::vector<std::vector<int>>& hosts) {
  std::size_t ranks = 0;
  for (const std::vector<int>& host : hosts) ranks += host.size();
  return static_cast<int>(ranks);
}

}  // namespace penstock::test
