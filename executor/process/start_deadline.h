// How long the processes of a job wait for each other: at its start, and when a connection breaks. After that
// time, each ends with an error that names those that have not come.
//
//   PENSTOCK_ASSIGN_OR_RETURN(const Nanoseconds limit, StartDeadline());
#pragma once

#include <chrono>

#include "framework/base/status.h"
#include "framework/runtime/clock.h"

namespace penstock::process {

inline constexpr Nanoseconds kStartDeadline = std::chrono::minutes(15);

// The limit that SetStartDeadline has set, else PENSTOCK_START_S (seconds; the launcher's --start_s), else
// FLAGS_rpc_deadline (milliseconds, as in Fluid), else kStartDeadline. kInvalidArgument E-environment.
Result<Nanoseconds> StartDeadline();

inline constexpr Nanoseconds kReconnectDeadline = std::chrono::seconds(60);

// How long a peer whose connection has broken may be out of reach before it counts as gone:
// PENSTOCK_RECONNECT_S (seconds; the launcher's --reconnect_s), else kReconnectDeadline. kInvalidArgument
// E-environment.
Result<Nanoseconds> ReconnectDeadline();

// Sets this process's limit, from 1 ms to 10^6 s. kInvalidArgument E-executor-start-s: it is out of range;
// kFailedPrecondition E-executor-start: it was set to another value before. Thread-safe.
Status SetStartDeadline(double seconds);

}  // namespace penstock::process
