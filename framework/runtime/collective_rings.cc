#include "framework/runtime/collective_rings.h"

#include <utility>

namespace penstock {

CollectiveRings::Waiting::Waiting(CollectiveRings& rings) : rings_(rings) {
  const std::lock_guard lock(rings_.mutex_);
  ++rings_.waiting_;
}

CollectiveRings::Waiting::~Waiting() {
  const std::lock_guard lock(rings_.mutex_);
  --rings_.waiting_;
}

void CollectiveRings::Keep(int ring, Completion started) {
  const std::lock_guard lock(mutex_);
  kept_[ring].push_back(std::move(started));
}

std::int64_t CollectiveRings::CountRun(std::uint64_t operation) {
  const std::lock_guard lock(mutex_);
  return ++runs_[operation];
}

std::vector<Completion> CollectiveRings::Taken(int ring) {
  const std::lock_guard lock(mutex_);
  const auto at = kept_.find(ring);
  return at == kept_.end() ? std::vector<Completion>() : std::exchange(at->second, {});
}

Status CollectiveRings::Await(int ring) {
  Status first;
  for (const Completion& started : Taken(ring)) {
    Status ended = Wait(started);  // of all, also after an error: their memory is in use until then
    if (first.ok()) first = std::move(ended);
  }
  return first;
}

Status CollectiveRings::AwaitAll() {
  std::vector<int> rings;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [ring, started] : kept_) rings.push_back(ring);
  }
  Status first;
  for (const int ring : rings) {
    Status ended = Await(ring);
    if (first.ok()) first = std::move(ended);
  }
  return first;
}

Status CollectiveRings::Wait(const Completion& completion) {
  const Waiting here(*this);
  return completion.Wait();
}

void CollectiveRings::Cancel() {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_ == 0) return;
  }
  AbortAll(Cancelled("E-cancelled", "the run was cancelled while it waited for other ranks"));
}

void CollectiveRings::GiveUp(const Status& why) {
  std::vector<int> rings;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [ring, started] : kept_) {
      if (!started.empty()) rings.push_back(ring);
    }
  }
  for (const int ring : rings) AbortRing(ring, why);
  for (const int ring : rings) static_cast<void>(Await(ring));
}

}  // namespace penstock
