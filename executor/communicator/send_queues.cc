#include "executor/communicator/send_queues.h"

#include <algorithm>
#include <utility>

namespace penstock::communicator {

bool SendQueues::HasAny() const {
  return std::any_of(queues_.begin(), queues_.end(), [](const auto& queue) { return !queue.empty(); });
}

bool SendQueues::IsWhole() const {
  if (closed_ || waiting_for_room_ > 0) return true;
  return std::all_of(queues_.begin(), queues_.end(),
                     [&](const auto& queue) { return queue.size() >= limits_.merge_max; });
}

bool SendQueues::Put(std::size_t queue, Variable gradient) {
  std::unique_lock lock(mutex_);
  if (queues_.size() <= queue) queues_.resize(queue + 1);
  const auto has_room = [&] { return closed_ || queues_[queue].size() < limits_.queue_max; };
  if (!has_room()) {
    ++waiting_for_room_;
    work_.notify_all();
    room_.wait(lock, has_room);
    --waiting_for_room_;
  }
  if (closed_) return false;
  queues_[queue].push_back(std::move(gradient));
  work_.notify_all();
  return true;
}

std::vector<SendQueues::Batch> SendQueues::Take() {
  std::unique_lock lock(mutex_);
  work_.wait(lock, [&] { return closed_ || HasAny(); });
  work_.wait_for(lock, limits_.patience, [&] { return IsWhole(); });
  std::vector<Batch> round;
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    if (queues_[i].empty()) continue;
    Batch& batch = round.emplace_back(Batch{.queue = i, .gradients = {}});
    for (; batch.gradients.size() < limits_.merge_max && !queues_[i].empty(); queues_[i].pop_front())
      batch.gradients.push_back(std::move(queues_[i].front()));
  }
  room_.notify_all();
  return round;
}

void SendQueues::Close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  room_.notify_all();
  work_.notify_all();
}

void SendQueues::CloseEmpty() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  for (auto& queue : queues_) queue.clear();
  room_.notify_all();
  work_.notify_all();
}

}  // namespace penstock::communicator
