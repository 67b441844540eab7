// A group of the ranks of several hosts, made of smaller groups: an inner group of each host's ranks, and an
// outer group of each host's first rank, its leader. Data crosses the network once per host.
//
//   PENSTOCK_ASSIGN_OR_RETURN(auto group, MakeHierarchicalGroup({
//       .rank = 2, .hosts = {{0, 1}, {2, 3}}, .inner = std::move(shared_memory), .outer = std::move(gloo)}));
//
// An all_reduce is an inner reduce to the leader, an outer all_reduce and an inner broadcast. Other
// operations work alike: a leader represents its host in the outer group. Before each operation the ranks
// exchange their signatures (an inner all_gather, an outer one, and an inner broadcast, of about 200 bytes a
// rank).
//
// Costs of all_reduce, with H hosts and S bytes: on each rank those of an inner reduce and broadcast of S
// bytes ("host" in collective_group.h); on each leader also 2(H-1) messages with 2 S (H-1)/H bytes ("net").
//
// Sums are added host by host, so adds_in_rank_order() is true only with one host, or one rank per host, and
// if that group adds in rank order; partial sums of fp16 and bf16 are rounded.
//
// When a group fails, the leader ends the other one with the same text, prefixed by the place:
// "among ranks 2, 3 of a host: rank 3 is gone: ...". Make the smaller groups with the ranks' numbers in the
// hierarchy as names (RankNames), so that errors and reports name these.
//
// Messages are possible between ranks of one host and between leaders; others are kUnimplemented
// E-collective-route: use a flat group.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "executor/collective/group/rank_names.h"
#include "framework/base/status.h"
#include "framework/runtime/collective_group.h"

namespace penstock::collective {

struct Hierarchy {
  int rank = 0;
  // The ranks of each host, its leader first; every rank 0, 1, ... exactly once. Equal on all ranks.
  std::vector<std::vector<int>> hosts;
  std::unique_ptr<CollectiveGroup> inner;  // of this rank's host, in the order of its list
  std::unique_ptr<CollectiveGroup> outer;  // of the leaders, in the order of `hosts`; null on other ranks
  RankNames names = {};                    // of all ranks, for a hierarchy that is a part of a larger group
  std::string trace_name = {};             // of the group (queued_group.h)
};

// Does not wait. kInvalidArgument E-collective-size: the hosts' ranks and the groups do not match.
Result<std::unique_ptr<CollectiveGroup>> MakeHierarchicalGroup(Hierarchy hierarchy);

}  // namespace penstock::collective
