// SYNC and HALF_ASYNC: a step of the process is a round. Gradients are sent as they come; the barrier ends
// the step and waits until the servers have them; a parameter is requested where the program receives it.
//
// Promise: a trainer computes step k + 1 with parameters that include its own gradients of step k; with a
// server in sync mode (completely_not_async) exactly all trainers' steps up to k, so the job gets the bytes
// of a job transpiled in sync mode. A process has one trainer thread, so nothing is merged here.
#pragma once

#include "executor/communicator/mode.h"

namespace penstock::communicator {

std::unique_ptr<Mode> MakeStepMode(rpc::Steps& rpc);  // the client outlives the mode

}  // namespace penstock::communicator
