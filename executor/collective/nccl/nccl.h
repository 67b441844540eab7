// A group over NCCL: each rank is a process with its own GPU. The elements are in host memory, as everywhere
// in CollectiveGroup, and go through GPU memory: copied there, exchanged by NCCL between GPUs, and copied
// back, all in one stream, one operation at a time.
//
//   PENSTOCK_ASSIGN_OR_RETURN(const GpuApi* const api, LoadGpuApi());
//   PENSTOCK_ASSIGN_OR_RETURN(auto group, MakeNcclGroup(*api, {.device = 0, .agree = std::move(agree),
//                                                              .watch = std::move(watch)}));
//
// NCCL hangs when ranks start different operations, and when a process of the same host dies. So the group
// uses two helper groups of the same ranks, over shared memory or TCP. In `agree`, the ranks exchange their
// signatures, about 200 bytes each, before they call NCCL, so a mismatch becomes an error instead of a hang.
// In `watch`, each rank waits for a message that its predecessor never sends, and so notices when a rank
// dies, fails or leaves.
//
// While an operation runs, ncclCommGetAsyncError is polled: an error there, a lost rank, and Abort all end in
// ncclCommAbort, and all ranks get the same error (collective_group.h), which names the operation. After a
// rank has left in order, only NCCL itself reports a death within an operation.
//
// Values: NCCL chooses the order of sums from the machines, the ranks and the size; partial sums of fp16
// and bf16 are rounded; whether a NaN wins in kMax and kMin is up to NCCL. Cost: that of NCCL, of the
// agreement, and of copying S bytes to the GPU and back. GPU memory: the size of the largest operation so
// far.
#pragma once

#include <memory>
#include <string>

#include "executor/collective/nccl/gpu_api.h"
#include "executor/observe/report_times.h"
#include "framework/base/status.h"
#include "framework/runtime/collective_group.h"

namespace penstock::collective {

struct NcclRendezvous {
  int device = 0;  // CUDA's number of it in this process
  // Groups of the same ranks, in the same order, used by this group alone.
  std::unique_ptr<CollectiveGroup> agree, watch;
  Nanoseconds report_after = observe::kReportAfter;  // of operations that NCCL does not complete
  std::string trace_name = {};                       // of the group (queued_group.h)
};

// Blocks until all ranks have called it. `api` outlives the group.
// kInvalidArgument     E-collective-size: `agree` and `watch` have different ranks
// kFailedPrecondition  E-collective-nccl: NCCL or CUDA fails on a rank, which is named on all
// kUnavailable         E-collective-peer-lost: a rank has died meanwhile
Result<std::unique_ptr<CollectiveGroup>> MakeNcclGroup(const GpuApi& api, NcclRendezvous rendezvous);

}  // namespace penstock::collective
