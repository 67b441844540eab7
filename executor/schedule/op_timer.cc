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

Nanoseconds OpTimer::Add(const std::string& type, Nanoseconds begin, int block, int position) {
  const Nanoseconds end = clock_.Now();
  if (tracer_ != nullptr) {
    tracer_->Record({.begin_ns = begin.count(),
                     .end_ns = end.count(),
                     .name = tracer_->InternInPlace(type),
                     .at = static_cast<std::uint32_t>(position),
                     .of = static_cast<std::uint32_t>(block),
                     .kind = trace::EventKind::kOp});
  }
  if (tracer_ == nullptr || profiles()) AddToProfile(type, begin, end);
  return end;
}

void OpTimer::AddRun(int block, Nanoseconds begin) {
  if (tracer_ == nullptr) return;
  tracer_->Record({.begin_ns = begin.count(),
                   .end_ns = clock_.Now().count(),
                   .of = static_cast<std::uint32_t>(block),
                   .kind = trace::EventKind::kRun});
}

void OpTimer::AddToProfile(const std::string& type, Nanoseconds begin, Nanoseconds end) {
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
