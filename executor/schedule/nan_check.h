// Looks at what each op has made: the first one that makes a NaN or an Inf ends the run.
//
//   FLAGS_check_nan_inf=1 in the environment, or SetCheckNanInf(true)
//
// A run asks once whether to look; it costs nothing when it does not. When it does: a pass over each output.
#pragma once

#include "executor/schedule/frame.h"

namespace penstock::exec {

// For all runs of the process that begin after the call. Thread-safe.
void SetCheckNanInf(bool on);
bool CheckNanInf();

// Waits for outputs that are under way. kFailedPrecondition E-run-nan: which output holds how many of them,
// and whether an input did so already, because it was fed or came from the scope.
Status RequireFinite(Frame& frame, const Instruction& instruction);

}  // namespace penstock::exec
