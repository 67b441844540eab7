// Chooses the backend of a ring and makes its group. No other code chooses a backend.
//
// By default, ranks of one host (same kernel, network namespace and user) share memory, and ranks on
// different hosts use TCP connections through Gloo. If hosts have several ranks each, the ranks of a host
// share memory, and the first ranks of the hosts are connected. PENSTOCK_COLLECTIVE_BACKEND, equal on all
// ranks, selects another backend: "shared_memory", "gloo", "hierarchical", or
//   "nccl"  if each rank has a GPU (selected by CUDA_VISIBLE_DEVICES and FLAGS_selected_gpus:
//           rendezvous/devices.h). Never the default: the operations' elements are in host memory and must
//           be copied to the GPU and back (collective/nccl.h)
//   "mpi"   in jobs started by mpirun, in builds with MPI (collective/mpi)
#pragma once

#include <memory>

#include "executor/collective/rendezvous/environment.h"
#include "executor/collective/rendezvous/join_facts.h"
#include "executor/collective/rendezvous/store.h"
#include "framework/runtime/collective_group.h"

namespace penstock::process {

// Makes the group of a ring. All ranks of the ring call it; it blocks until all have. With group_ranks > 0,
// that many consecutive ranks form a group of a hierarchy, on any hosts, unless another backend is selected;
// the ranks of a group, or the first ranks of all groups, share memory if they are on one host, and otherwise
// use connections.
//
// Over TCP, other ranks reach this one at the host of its address in the job, or, if PENSTOCK_IFNAME or
// NCCL_SOCKET_IFNAME is set, at that interface (rendezvous/interface.h).
//
// kInvalidArgument E-collective-choice: the backend is unknown, does not suit the ranks' hosts, or needs a
// GPU that a rank lacks; or ranks chose different backends. E-rendezvous-groups: the number of ranks is not a
// multiple of group_ranks. Also the errors of the store, of interface.h, and of the factories in
// executor/collective: shared_memory.h, gloo.h, hierarchy.h, nccl.h, mpi/mpi.h.
Result<std::unique_ptr<CollectiveGroup>> MakeRingGroup(
    rendezvous::Store& store, const rendezvous::Ring& ring, int group_ranks,
    const rendezvous::Environment& environment = rendezvous::ProcessEnvironment());

// Whether this build has the backend "mpi".
bool HasMpi();

}  // namespace penstock::process
