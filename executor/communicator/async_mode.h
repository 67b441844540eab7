// ASYNC: a trainer's step does not wait for its gradients. They are copied into bounded queues; a send
// thread merges the queued gradients of a variable, sends the result and ends a step of the client; a
// receive thread pulls parameters into memory of its own.
//
// Promise: every gradient is sent once, alone or in the mean of at most merge_max consecutive ones; a trainer
// is never more than queue_max gradients of a variable ahead of the send thread. A parameter changes only in
// Land and between two runs of a program, never while a step computes, and holds the bytes of one answer of
// its servers. At these moments it contains all gradients of this trainer but the newest
// own_gradients_missing_max of each variable (bounded staleness, Ho et al., NeurIPS 2013, of own updates). A
// step that counts for a learning-rate schedule is counted once, with the round that takes its gradients.
// Stop sends what is queued, and returns when the servers have it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "executor/communicator/mode.h"
#include "executor/communicator/send_queues.h"

namespace penstock::communicator {

struct AsyncSettings {
  QueueLimits queues;
  // Parameters are requested after more than this many rounds, by their own thread or by the send thread.
  std::size_t rounds_before_receive = 1;
  bool receives_apart = true;
  // A full queue, and the rounds between two receives.
  std::size_t own_gradients_missing_max() const {
    return queues.queue_max + (rounds_before_receive + 1) * queues.merge_max;
  }
  observe::Observer* observer = nullptr;  // counts the trainer's waits for room; outlives the mode
};

// Steps end at `pservers`, which must be attached when the first gradient comes. The client outlives the
// mode; the mode's threads and the trainer's call it concurrently.
std::unique_ptr<Mode> MakeAsyncMode(RpcClient& rpc, AsyncSettings settings, std::vector<std::string> pservers,
                                    int trainer_id);

}  // namespace penstock::communicator
