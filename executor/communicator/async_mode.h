// ASYNC: a trainer's step does not wait for its gradients. They are copied into bounded queues; a send thread
// merges what waits of a variable, sends it and ends a step of the client; a receive thread asks for
// parameters into memory of its own.
//
// Promise: every gradient is sent once, alone or in the mean of at most merge_max that follow each other; a
// trainer is never more than queue_max gradients of a variable ahead of the send thread. A parameter
// changes only in Land and between two runs of a program, so never while a step computes, and has the bytes
// of one answer of its servers. A step that a learning-rate schedule is to count is counted once, with the
// round that takes its gradients. Stop sends what waits, and returns when the servers have it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "executor/communicator/mode.h"
#include "executor/communicator/send_queues.h"

namespace penstock::communicator {

struct AsyncSettings {
  QueueLimits queues;
  // Parameters are asked for after more than so many rounds, by a thread of their own or by the send thread.
  std::size_t rounds_before_receive = 1;
  bool receives_apart = true;
  observe::Observer* observer = nullptr;  // counts what the trainer waits for room; outlives the mode
};

// Steps end at `pservers`, which are attached when the first gradient comes. The client outlives the mode;
// its calls are made from threads of the mode, and from the trainer's at the same time.
std::unique_ptr<Mode> MakeAsyncMode(RpcClient& rpc, AsyncSettings settings, std::vector<std::string> pservers,
                                    int trainer_id);

}  // namespace penstock::communicator
