// Gradients that wait to be sent: a bounded queue for each variable. A trainer's thread fills them, a send
// thread empties all of them together, a round at a time.
//
//   SendQueues queues({.queue_max = 20, .merge_max = 5, .patience = 50ms});
//   if (!queues.Put(0, std::move(gradient))) ...      // trainer: waits while queue 0 is full; false: closed
//   while (true) {                                    // send thread
//     std::vector<SendQueues::Batch> round = queues.Take();
//     if (round.empty()) break;                       // closed, and nothing is left
//     ...
//   }
//
// Nothing that was put is lost or taken twice, and what is taken of a queue keeps its order. What Put waits
// is exposed time. Thread-safe.
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
  std::size_t merge_max = 1;           // of them, in a batch
  std::chrono::milliseconds patience;  // how long a round waits for more than it has
};

class SendQueues {
 public:
  struct Batch {
    std::size_t queue = 0;
    std::vector<Variable> gradients;  // the oldest first
  };

  // `observer` counts what Put waits, and outlives the queues; null: nobody does.
  explicit SendQueues(QueueLimits limits, observe::Observer* observer = nullptr)
      : limits_(limits), observer_(observer) {}

  // A queue exists from its first Put on.
  bool Put(std::size_t queue, Variable gradient);
  // Waits until there is a gradient; then until each queue has a whole batch, somebody waits for room, or the
  // patience is over. By position of the queue.
  std::vector<Batch> Take();
  // Put gives up from here on; what waits stays to be taken.
  void Close();
  // What waits is dropped too: it cannot be sent.
  void CloseEmpty();
  // How often a queue was looked at so far, for tests of what a gradient costs.
  std::uint64_t visited() const;

 private:
  bool IsWhole() const {  // a round that is waited for no longer
    return closed_ || waiting_for_room_ > 0 || whole_ == queues_.size();
  }

  void WaitForRoom(std::unique_lock<std::mutex>& lock, std::size_t queue);
  bool HasRoom(std::size_t queue) const { return closed_ || queues_[queue].size() < limits_.queue_max; }

  const QueueLimits limits_;
  observe::Observer* const observer_;
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable room_, work_;
  std::vector<std::deque<Variable>> queues_;
  std::set<std::size_t> filled_;  // queues that are not empty
  std::size_t whole_ = 0;         // of them, those that have a whole batch
  std::uint64_t visited_ = 0;
  std::size_t waiting_for_room_ = 0;
  bool closed_ = false;
};

}  // namespace penstock::communicator
