#include "framework/runtime/batch_queue.h"

#include <algorithm>
#include <map>
#include <utility>

#include "framework/runtime/read_turns.h"

namespace penstock {
namespace {

struct QueueRegistry {
  std::mutex mutex;
  std::map<std::int64_t, std::weak_ptr<BatchQueue>> queues;
  std::int64_t last = 0;
};

QueueRegistry& AllQueues() {
  static QueueRegistry& registry = *new QueueRegistry();
  return registry;
}

}  // namespace

std::shared_ptr<BatchQueue> BatchQueue::Make(std::size_t capacity) {
  QueueRegistry& all = AllQueues();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.queues, [](const auto& entry) { return entry.second.expired(); });
  std::shared_ptr<BatchQueue> queue(new BatchQueue(std::max<std::size_t>(capacity, 1), ++all.last));
  all.queues.emplace(queue->number_, queue);
  return queue;
}

std::shared_ptr<BatchQueue> BatchQueue::Find(std::int64_t number) {
  QueueRegistry& all = AllQueues();
  const std::lock_guard lock(all.mutex);
  const auto it = all.queues.find(number);
  return it == all.queues.end() ? nullptr : it->second.lock();
}

void BatchQueue::CancelWaits() {
  std::vector<std::shared_ptr<BatchQueue>> queues;
  {
    QueueRegistry& all = AllQueues();
    const std::lock_guard lock(all.mutex);
    for (const auto& [number, queue] : all.queues) queues.push_back(queue.lock());
  }
  for (const auto& queue : queues) {
    if (queue == nullptr) continue;
    const std::lock_guard lock(queue->mutex_);
    queue->cancelled_ = queue->waiting_;
    queue->changed_.notify_all();
  }
}

std::size_t BatchQueue::size() const {
  const std::lock_guard lock(mutex_);
  return batches_.size();
}

bool BatchQueue::Push(Batch batch) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return state_ != State::kOpen || batches_.size() < capacity_; });
  if (state_ != State::kOpen) return false;
  batches_.push_back(std::move(batch));
  changed_.notify_all();
  return true;
}

void BatchQueue::End() { Fail(OkStatus()); }

void BatchQueue::Fail(Status error) {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kOpen) return;
  state_ = State::kEnded;
  error_ = std::move(error);
  changed_.notify_all();
}

Result<std::optional<Batch>> BatchQueue::Pop() { return Next(true); }

Result<std::optional<Batch>> BatchQueue::Peek() { return Next(false); }

std::optional<Batch> BatchQueue::TryPeek() const {
  const std::lock_guard lock(mutex_);
  return batches_.empty() ? std::nullopt : std::optional<Batch>(batches_.front());
}

Result<std::optional<Batch>> BatchQueue::Next(bool takes) {
  const ReadTurns::Turn turn(number_, takes);
  std::unique_lock lock(mutex_);
  ++waiting_;
  changed_.wait(
      lock, [&] { return cancelled_ > 0 || turn.aborted() || state_ != State::kOpen || !batches_.empty(); });
  --waiting_;
  if (cancelled_ > 0 || turn.aborted()) {
    cancelled_ = std::max(0, cancelled_ - 1);
    return Cancelled("E-read-cancelled", "the wait for a batch was cancelled");
  }
  if (state_ == State::kClosed) {
    return FailedPrecondition("E-read-not-started", "the reader is not started; call its start() first");
  }
  if (batches_.empty()) {
    if (!error_.ok()) return error_;
    return std::optional<Batch>();
  }
  if (!takes) return std::optional<Batch>(batches_.front());
  std::optional<Batch> batch = std::move(batches_.front());
  batches_.pop_front();
  changed_.notify_all();
  return batch;
}

void BatchQueue::Close() {
  const std::lock_guard lock(mutex_);
  state_ = State::kClosed;
  batches_.clear();
  error_ = OkStatus();
  changed_.notify_all();
}

void BatchQueue::Open() {
  const std::lock_guard lock(mutex_);
  state_ = State::kOpen;
}

}  // namespace penstock
