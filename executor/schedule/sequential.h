// The sequential scheduler: runs one op after the other, in the order of the instructions. It is the
// reference for other schedulers.
#pragma once

#include "executor/schedule/cancellation.h"
#include "executor/schedule/frame.h"
#include "executor/schedule/op_timer.h"
#include "framework/runtime/services.h"

namespace penstock::exec {

// Runs all steps of a frame between its BeginRun and EndRun. kCancelled E-run-cancelled: stopped between two
// ops. Errors of kernels name the op, its input values and the user's line.
//
//   timer  gets the duration of each op; may be null
Status RunSequential(Frame& frame, Scope& scope, const Services& services, const Cancellation& cancellation,
                     OpTimer* timer);

}  // namespace penstock::exec
