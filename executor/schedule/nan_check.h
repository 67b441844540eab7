// Checks the outputs of each op: the first op that produces a NaN or an Inf ends the run.
//
//   FLAGS_check_nan_inf=1 in the environment, or SetCheckNanInf(true)
//
// A run reads the flag when its compiled block is looked up and when its first step begins. Off, the check
// costs nothing; on, it costs a pass over each output, and plans are made without fusion, so that each op has
// outputs of its own.
#pragma once

#include "executor/schedule/frame.h"

namespace penstock::exec {

// Applies to all runs of the process that begin after the call. Thread-safe.
void SetCheckNanInf(bool on);
bool CheckNanInf();

// Returns kInvalidArgument E-run-nan if an output holds a NaN or an Inf. The error names the output, the
// number of such values, and any input from a feed or the scope that already held one.
Status RequireFinite(Frame& frame, const Instruction& instruction);

}  // namespace penstock::exec
