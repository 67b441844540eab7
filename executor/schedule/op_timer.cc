#include "executor/schedule/op_timer.h"

#include <algorithm>

namespace penstock::exec {

void OpTimer::Reset() {
  const std::lock_guard lock(mutex_);
  times_.clear();
  index_.clear();
  events_.clear();
  left_out_ = 0;
  threads_.clear();
}

void OpTimer::Add(const std::string& type, Nanoseconds begin) {
  const Nanoseconds end = clock_.Now();
  const Nanoseconds took = end - begin;
  const std::lock_guard lock(mutex_);
  const auto [found, added] = index_.try_emplace(type, times_.size());
  if (added) times_.push_back({.type = type, .min = took, .max = took});
  OpTimes& times = times_[found->second];
  ++times.count;
  times.total += took;
  times.min = std::min(times.min, took);
  times.max = std::max(times.max, took);
  if (events_.size() == kEventsMax) {
    ++left_out_;
    return;
  }
  const int thread =
      threads_.try_emplace(std::this_thread::get_id(), static_cast<int>(threads_.size())).first->second;
  events_.push_back({.type = found->second, .thread = thread, .begin = begin, .end = end});
}

std::vector<OpTimes> OpTimer::Times() const {
  const std::lock_guard lock(mutex_);
  return times_;
}

std::vector<OpEvent> OpTimer::Events() const {
  const std::lock_guard lock(mutex_);
  return events_;
}

std::int64_t OpTimer::events_left_out() const {
  const std::lock_guard lock(mutex_);
  return left_out_;
}

}  // namespace penstock::exec
