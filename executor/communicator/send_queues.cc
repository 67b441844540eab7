#include "executor/communicator/send_queues.h"

#include <iterator>
#include <utility>

namespace penstock::communicator {

bool SendQueues::Put(std::size_t queue, Variable gradient) {
  std::unique_lock lock(mutex_);
  if (queues_.size() <= queue) queues_.resize(queue + 1);
  if (!HasRoom(queue)) WaitForRoom(lock, queue);
  if (closed_) return false;
  queues_[queue].push_back(std::move(gradient));
  filled_.insert(queue);
  if (queues_[queue].size() == limits_.merge_max) ++whole_;
  ++visited_;
  work_.notify_all();
  return true;
}

// Counts the wait as exposed time, but for no peer: the send thread, for which this waits, counts its own
// wait for the server.
void SendQueues::WaitForRoom(std::unique_lock<std::mutex>& lock, std::size_t queue) {
  const Nanoseconds began = observer_ == nullptr ? Nanoseconds(0) : observer_->clock().Now();
  ++waiting_for_room_;
  work_.notify_all();
  room_.wait(lock, [&] { return HasRoom(queue); });
  --waiting_for_room_;
  if (observer_ != nullptr) observer_->CountWait(observer_->clock().Now() - began, nullptr);
}

std::vector<SendQueues::Batch> SendQueues::Take() {
  std::unique_lock lock(mutex_);
  sending_ = false;
  idle_.notify_all();
  work_.wait(lock, [&] { return closed_ || !filled_.empty(); });
  work_.wait_for(lock, limits_.patience, [&] { return IsWhole(); });
  std::vector<Batch> round;
  for (auto at = filled_.begin(); at != filled_.end();) {
    std::deque<Variable>& queue = queues_[*at];
    Batch& batch = round.emplace_back(Batch{.queue = *at, .gradients = {}});
    const bool was_whole = queue.size() >= limits_.merge_max;
    for (; batch.gradients.size() < limits_.merge_max && !queue.empty(); queue.pop_front())
      batch.gradients.push_back(std::move(queue.front()));
    if (was_whole && queue.size() < limits_.merge_max) --whole_;
    at = queue.empty() ? filled_.erase(at) : std::next(at);
    ++visited_;
  }
  sending_ = !round.empty();
  room_.notify_all();
  return round;
}

void SendQueues::Drain() {
  std::unique_lock lock(mutex_);
  ++draining_;
  work_.notify_all();
  idle_.wait(lock, [&] { return closed_ || (filled_.empty() && !sending_); });
  --draining_;
}

std::uint64_t SendQueues::visited() const {
  const std::lock_guard lock(mutex_);
  return visited_;
}

void SendQueues::Close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  room_.notify_all();
  work_.notify_all();
  idle_.notify_all();
}

void SendQueues::CloseEmpty() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  for (auto& queue : queues_) queue.clear();
  filled_.clear();
  whole_ = 0;
  room_.notify_all();
  work_.notify_all();
  idle_.notify_all();
}

}  // namespace penstock::communicator
