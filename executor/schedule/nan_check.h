// Checks the outputs of each op: the first op that produces a NaN or an Inf ends the run.
//
//   FLAGS_check_nan_inf=1 in the environment, or SetCheckNanInf(true)
//
// Each run checks once whether this is on; when off it costs nothing, when on a pass over each output.
#pragma once

#include "executor/schedule/frame.h"

namespace penstock::exec {

// Applies to all runs of the process that begin after the call. Thread-safe.
void SetCheckNanInf(bool on);
bool CheckNanInf();

// Waits for outputs in progress. kFailedPrecondition E-run-nan: names the output, the number of such values,
// and an input that already had one because it was fed or came from the scope.
Status RequireFinite(Frame& frame, const Instruction& instruction);

}  // namespace penstock::exec
