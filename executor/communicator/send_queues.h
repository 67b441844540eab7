// Queues of gradients to be sent, one bounded queue per variable. A trainer's thread fills them; a send
// thread empties all of them together, one round at a time.
//
//   SendQueues queues({.queue_max = 20, .merge_max = 5, .patience = 50ms});
//   if (!queues.Put(0, std::move(gradient))) ...      // trainer: waits while queue 0 is full; false: closed
//   while (true) {                                    // send thread
//     std::vector<SendQueues::Batch> round = queues.Take();
//     if (round.empty()) break;                       // closed, and all queues are empty
//     ...
//   }
//
// No gradient is lost or taken twice, and the order within a queue is kept. Time spent waiting in Put counts
// as exposed communication. Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <set>
#include <vector>

#include "executor/observe/observer.h"
#include "framework/tensor/variable.h"

namespace penstock::communicator {

struct QueueLimits {
  std::size_t queue_max = 1;           // gradients in a queue
  std::size_t merge_max = 1;           // gradients in a batch
  std::chrono::milliseconds patience;  // how long a round waits for more gradients
};

class SendQueues {
 public:
  struct Batch {
    std::size_t queue = 0;
    std::vector<Variable> gradients;  // the oldest first
  };

  // `observer` counts the waits of Put, and outlives the queues; may be null.
  explicit SendQueues(QueueLimits limits, observe::Observer* observer = nullptr)
      : limits_(limits), observer_(observer) {}

  // A queue is created by its first Put.
  bool Put(std::size_t queue, Variable gradient);
  // Waits until there is a gradient, and then until each queue has a full batch, a Put waits for room, or the
  // patience is over. Returns batches by position of the queue.
  std::vector<Batch> Take();
  // Waits until everything put before has been taken and the next Take has begun, so what was taken is sent.
  // While it waits, no round waits for more gradients.
  void Drain();
  // Put fails from here on; queued gradients can still be taken.
  void Close();
  // Also drops the queued gradients, which cannot be sent.
  void CloseEmpty();
  // The number of visits to queues so far, for tests of the cost of a gradient.
  std::uint64_t visited() const;

 private:
  bool IsWhole() const {  // the round need not wait any longer
    return closed_ || waiting_for_room_ > 0 || draining_ > 0 || whole_ == queues_.size();
  }

  void WaitForRoom(std::unique_lock<std::mutex>& lock, std::size_t queue);
  bool HasRoom(std::size_t queue) const { return closed_ || queues_[queue].size() < limits_.queue_max; }

  const QueueLimits limits_;
  observe::Observer* const observer_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable room_, work_, idle_;
  std::vector<std::deque<Variable>> queues_;
  std::set<std::size_t> filled_;  // queues that are not empty
  std::size_t whole_ = 0;         // the number of queues with a full batch
  std::uint64_t visited_ = 0;
  std::size_t waiting_for_room_ = 0;
  std::size_t draining_ = 0;  // calls of Drain in progress
  bool sending_ = false;      // a round has been taken, and its Take has no successor yet
  bool closed_ = false;
};

}  // namespace penstock::communicator
