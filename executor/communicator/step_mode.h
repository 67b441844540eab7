// SYNC and HALF_ASYNC: a process's step is a round. Gradients go out as they come, the barrier ends the step
// and waits until the servers have them, and a parameter is asked for where the program receives it.
//
// Promise: a trainer computes step k + 1 with parameters that hold its own gradients of step k; with a server
// in sync mode (completely_not_async) exactly all trainers' steps up to k, so that a job ends in the bytes of
// one that is transpiled in sync mode. A process has one trainer thread, so nothing is merged here.
#pragma once

#include "executor/communicator/mode.h"

namespace penstock::communicator {

std::unique_ptr<Mode> MakeStepMode(RpcClient& rpc);  // which outlives the mode

}  // namespace penstock::communicator
