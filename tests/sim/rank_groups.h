// Makes groups of ranks on the simulated network: rings, and hierarchies of rings.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "framework/runtime/collective_group.h"
#include "tests/sim/rank_network.h"

namespace penstock::test {

using Group = std::unique_ptr<CollectiveGroup>;
using MakeGroup = std::function<Group(RankNetwork&, int rank)>;

// 10^rank: as an input of a sum, it reveals a rank that is missing or added twice.
std::int64_t GivenBy(int rank);

// A ring of all ranks of the network. The seed decides how small data is sent and how larger data is divided.
Group FlatGroup(RankNetwork& net, int rank, int ranks, std::uint64_t seed);
// A ring of each host's ranks, and a ring of the hosts' first ranks.
Group HierarchyOf(RankNetwork& net, int rank, const std::vector<std::vector<int>>& hosts, std::uint64_t seed);

inline const std::vector<std::vector<int>> kHosts[] = {
    {{0, 1}, {2, 3}}, {{0, 2, 4}, {1, 3}}, {{0}, {1, 2}, {3}}, {{0, 1, 2}}};
int RanksOf(const std::vector<std::vector<int>>& hosts);

}  // namespace penstock::test
