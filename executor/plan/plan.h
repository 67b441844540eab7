// From a compiled block and the types of a run to the plan that the run follows: ReceiveEarly
// (receive_early.h), ReceiveLate (receive_late.h), StoreChannelsLast (channels_last.h), FuseOps (fuse.h),
// FuseBias (fuse_bias.h) and RunByRows (by_rows.h) rewrite the block, then Specialise (executor/graph) infers
// shapes, prepares kernels and places temporaries, outputs in the memory of inputs where that is possible
// (executor/graph/in_place.h). In the end VerifyPlan (verify.h) checks the result.
//
//   penstock plan --exec main.pb --batch 64    prints the plan of a program
#pragma once

#include <memory>
#include <vector>

#include "executor/graph/specialise.h"

namespace penstock::exec {

struct PlanOptions {
  bool channels_last = true;
  bool fusion = true;        // FuseOps, FuseBias and RunByRows; bytes are the same
  bool in_place = true;      // outputs take over the memory of inputs; bytes are the same
  bool receive_late = true;  // parameters may arrive after the run; bytes are the same
};

// The options that PENSTOCK_LAYOUTS, PENSTOCK_FUSION and PENSTOCK_LATE_PARAMETERS ask for: `plain` and `off`
// turn a pass off.
PlanOptions PlanOptionsBySetting();

// `known`: the state of each slot of `block` before the run, as for Specialise. Errors of Specialise and
// VerifyPlan.
Result<Specialised> MakePlan(const OpRegistry& ops, std::shared_ptr<const CompiledBlock> block,
                             std::vector<TensorDesc> known, const Services& services,
                             const PlanOptions& options);

}  // namespace penstock::exec
