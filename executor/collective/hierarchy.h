// A group of the ranks of several hosts, made of smaller ones: an inner group of each host's ranks, and an
// outer one of the first rank of each host, its leader. What all ranks need crosses the network once a host.
//
//   PENSTOCK_ASSIGN_OR_RETURN(auto group, MakeHierarchicalGroup({
//       .rank = 2, .hosts = {{0, 1}, {2, 3}}, .inner = std::move(shared_memory), .outer = std::move(gloo)}));
//
// all_reduce: inner reduce to the leader, outer all_reduce, inner broadcast. The others alike: a leader
// stands for its host in the outer group. Before each operation the ranks gather what all are about to do (an
// inner all_gather, an outer one, and an inner broadcast, of about 200 bytes a rank).
//
// Sums are added host by host, so adds_in_rank_order() holds only where there is one host, or one rank a
// host, and that group's adds so; partial sums of fp16 and bf16 are rounded.
//
// Where a group fails, the leader ends the other one with the same text, in front of which stands where it
// happened: "among ranks 2, 3 of a host: rank 1 is gone: ...", numbered as in that group.
//
// Messages: between ranks of one host, or between leaders. Others are kUnimplemented E-collective-route: use
// a flat group.
#pragma once

#include <memory>
#include <vector>

#include "framework/base/status.h"
#include "framework/runtime/collective_group.h"

namespace penstock::collective {

struct Hierarchy {
  int rank = 0;
  // The ranks of each host, its leader first; each rank 0, 1, ... once. The same on all ranks.
  std::vector<std::vector<int>> hosts;
  std::unique_ptr<CollectiveGroup> inner;  // of this rank's host, in the order of its list
  std::unique_ptr<CollectiveGroup> outer;  // of the leaders, in the order of hosts; null on other ranks
};

// Does not wait. kInvalidArgument E-collective-size: the hosts' ranks, or the groups, do not fit together.
Result<std::unique_ptr<CollectiveGroup>> MakeHierarchicalGroup(Hierarchy hierarchy);

}  // namespace penstock::collective
