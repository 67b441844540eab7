#include "executor/client/step_tracker.h"

#include "framework/base/check.h"

namespace penstock::client {

void StepTracker::EndStep() { step_.fetch_add(1, std::memory_order_acq_rel); }

void StepTracker::Join(std::uint64_t step) {
  const std::lock_guard lock(mutex_);
  joined_at_ = step;
  step_.store(step, std::memory_order_release);
  joined_.store(true, std::memory_order_release);
}

std::uint64_t StepTracker::joined_at() const {
  const std::lock_guard lock(mutex_);
  return joined_at_;
}

bool StepTracker::TakeFirstStep(std::uint64_t first_step) {
  const std::lock_guard lock(mutex_);
  if (!first_step_) first_step_ = first_step;
  return *first_step_ == first_step;
}

std::optional<std::uint64_t> StepTracker::first_step() {
  const std::lock_guard lock(mutex_);
  first_step_awaited_ = !first_step_ || !joined();
  return first_step_awaited_ ? std::nullopt : std::optional(*first_step_ + joined_at_);
}

bool StepTracker::first_step_awaited() const {
  const std::lock_guard lock(mutex_);
  return first_step_awaited_;
}

void StepTracker::BeginPush(std::uint64_t step) {
  const std::lock_guard lock(mutex_);
  if (pushes_.empty()) first_ = step;
  PENSTOCK_CHECK(step >= first_, "a push begins in a step that is over");
  if (step - first_ >= pushes_.size()) pushes_.resize(step - first_ + 1, 0);
  ++pushes_[step - first_];
}

bool StepTracker::EndPush(std::uint64_t step) {
  const std::lock_guard lock(mutex_);
  --pushes_[step - first_];
  bool changed = false;
  for (; !pushes_.empty() && pushes_.front() == 0; ++first_) {
    if (first_ < this->step()) changed = true;
    pushes_.pop_front();
  }
  return changed;
}

bool StepTracker::EarlierPushesDone(std::uint64_t step) const {
  if (!Done(Work::kFirstValues)) return false;
  const std::lock_guard lock(mutex_);
  return pushes_.empty() || first_ >= step;
}

}  // namespace penstock::client
