// Which backend joins the ranks of a ring: the one place that chooses.
//
// Ranks of one host (one kernel, one network namespace, one user) share memory; ranks of hosts of their own
// have connections over TCP, by Gloo; where hosts have several ranks, those share memory, and the first of
// each host has connections. PENSTOCK_COLLECTIVE_BACKEND, the same on all ranks, can choose another one:
// "shared_memory", "gloo", "hierarchical", or
//   "nccl"  where each rank has a GPU (CUDA_VISIBLE_DEVICES and FLAGS_selected_gpus say which:
//           rendezvous/devices.h). Never chosen by itself: the operations' elements lie in the host's memory,
//           which has to be copied to the GPU and back (collective/nccl.h)
//   "mpi"   in jobs that mpirun has started, by builds that have it (collective/mpi)
#pragma once

#include <memory>

#include "executor/collective/rendezvous/environment.h"
#include "executor/collective/rendezvous/join_facts.h"
#include "executor/collective/rendezvous/store.h"
#include "framework/runtime/collective_group.h"

namespace penstock::process {

// The group of a ring. All its ranks call it for the same ring; it blocks until all have. With group_ranks,
// each so many ranks in a row are a group of a hierarchy, wherever they are, unless another backend is
// chosen; ranks of a group, or first ranks of all groups, share memory where they share a host, and else have
// connections.
//
// By TCP the others reach this rank at the host of its address in the job; where PENSTOCK_IFNAME or
// NCCL_SOCKET_IFNAME is set, at that interface (rendezvous/interface.h).
//
// kInvalidArgument E-collective-choice: no such backend, one that the ranks' hosts do not allow, one for
// which a rank has no GPU, or ranks that want different ones. E-rendezvous-groups: the ranks do not fill
// groups. The store's errors, those of interface.h, and those of the factories in executor/collective:
// shared_memory.h, gloo.h, hierarchy.h, nccl.h, mpi/mpi.h.
Result<std::unique_ptr<CollectiveGroup>> MakeRingGroup(
    rendezvous::Store& store, const rendezvous::Ring& ring, int group_ranks,
    const rendezvous::Environment& environment = rendezvous::ProcessEnvironment());

}  // namespace penstock::process
