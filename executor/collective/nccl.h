// A group over NCCL: each rank is a process with a GPU of its own. The elements are in the host's memory, as
// everywhere in CollectiveGroup, and travel through memory of the GPU: copied there, exchanged by NCCL from
// GPU to GPU, and copied back, all in one stream, an operation at a time.
//
//   PENSTOCK_ASSIGN_OR_RETURN(const GpuApi* const api, LoadGpuApi());
//   PENSTOCK_ASSIGN_OR_RETURN(auto group, MakeNcclGroup(*api, {.device = 0, .agree = std::move(agree),
//                                                              .watch = std::move(watch)}));
//
// NCCL hangs where ranks start different operations, and where a process of the same host dies. So a group
// has two others of the same ranks beside it, over shared memory or TCP. `agree` carries what each rank is
// about to do, about 200 bytes, before NCCL is called: mismatches are named, not run. In `watch` each rank
// waits for a word of the one before it that never comes, until a rank dies, fails or leaves.
//
// While an operation runs, ncclCommGetAsyncError is asked: an error there, a rank that is lost, and Abort all
// end in ncclCommAbort, and all ranks get the same error (collective_group.h), which names the operation.
// Once a rank has left in order, NCCL alone tells the others of a death within an operation.
//
// Values: sums are added in an order that NCCL chooses by the machines, the ranks and the size; of fp16 and
// bf16 partial sums are rounded; whether a NaN wins in kMax and kMin is NCCL's.
// Cost: that of NCCL, of the agreement, and S bytes to the GPU and back. GPU memory: that of the largest
// operation so far.
#pragma once

#include <memory>

#include "executor/collective/gpu_api.h"
#include "executor/observe/report_times.h"
#include "framework/base/status.h"
#include "framework/runtime/collective_group.h"

namespace penstock::collective {

struct NcclRendezvous {
  int device = 0;  // as CUDA numbers it in this process
  // Of the same ranks, in the same order; used by this group alone.
  std::unique_ptr<CollectiveGroup> agree, watch;
  Nanoseconds report_after = observe::kReportAfter;  // of operations that NCCL does not end
};

// Blocks until all ranks have called it. `api` outlives the group.
// kInvalidArgument     E-collective-size: `agree` and `watch` are of different ranks
// kFailedPrecondition  E-collective-nccl: NCCL or CUDA refuses on some rank, which is named on all
// kUnavailable         E-collective-peer-lost: a rank has died meanwhile
Result<std::unique_ptr<CollectiveGroup>> MakeNcclGroup(const GpuApi& api, NcclRendezvous rendezvous);

}  // namespace penstock::collective
