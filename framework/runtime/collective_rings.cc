#include "framework/runtime/collective_rings.h"

#include <algorithm>
#include <utility>

namespace penstock {
namespace {

constexpr std::size_t kAloneFrom = 8;  // tensors larger than 1/kAloneFrom of a bucket are reduced alone

}  // namespace

CollectiveRings::Waiting::Waiting(CollectiveRings& rings) : rings_(rings) {
  const std::lock_guard lock(rings_.mutex_);
  ++rings_.waiting_;
}

CollectiveRings::Waiting::~Waiting() {
  const std::lock_guard lock(rings_.mutex_);
  --rings_.waiting_;
}

bool CollectiveRings::waits() {
  const std::lock_guard lock(mutex_);
  return waiting_ > 0;
}

void CollectiveRings::Keep(int ring, Completion started) {
  const std::lock_guard lock(mutex_);
  kept_[ring].push_back({std::move(started), nullptr});
}

std::unique_ptr<ReductionBucket> CollectiveRings::EmptyBucket() {
  if (idle_.empty()) return std::make_unique<ReductionBucket>(bucket_bytes_);
  std::unique_ptr<ReductionBucket> bucket = std::move(idle_.back());
  idle_.pop_back();
  return bucket;
}

Status CollectiveRings::ReduceBeside(int ring, const Elements& values, Reduction reduction,
                                     const CollectiveOptions& options) {
  std::unique_ptr<ReductionBucket>& filling = filling_[ring];
  const bool alone = values.bytes() > bucket_bytes_ / kAloneFrom;
  if (filling != nullptr && (alone || !filling->Takes(values, reduction))) {
    PENSTOCK_RETURN_IF_ERROR(Flush(ring));
  }
  if (alone) {
    PENSTOCK_ASSIGN_OR_RETURN(CollectiveGroup* const group, Ring(ring));
    Keep(ring, group->AllReduce(values, reduction, options));
    return OkStatus();
  }
  if (filling == nullptr) filling = EmptyBucket();
  filling->Add(values, reduction, options);
  return OkStatus();
}

Status CollectiveRings::Flush(int ring) {
  const auto at = filling_.find(ring);
  if (at == filling_.end() || at->second == nullptr) return OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(CollectiveGroup* const group, Ring(ring));
  std::unique_ptr<ReductionBucket> bucket = std::move(at->second);
  Completion started = bucket->Start(*group);
  const std::lock_guard lock(mutex_);
  kept_[ring].push_back({std::move(started), std::move(bucket)});
  return OkStatus();
}

std::int64_t* CollectiveRings::RunsOf(std::uint64_t operation) {
  const std::lock_guard lock(mutex_);
  return &runs_[operation];
}

void CollectiveRings::ForgetRuns() {
  const std::lock_guard lock(mutex_);
  for (auto& [operation, runs] : runs_) runs = 0;
}

std::vector<CollectiveRings::Kept> CollectiveRings::Taken(int ring) {
  const std::lock_guard lock(mutex_);
  const auto at = kept_.find(ring);
  return at == kept_.end() ? std::vector<Kept>() : std::exchange(at->second, {});
}

Status CollectiveRings::Await(int ring) {
  Status first = Flush(ring);
  for (Kept& started : Taken(ring)) {
    Status ended = Wait(started.done);  // wait for all, even after an error: their memory is in use
    if (ended.ok() && started.bucket != nullptr) {
      started.bucket->CopyOut();
      idle_.push_back(std::move(started.bucket));
    }
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
  for (const auto& [ring, filling] : filling_) {
    if (filling != nullptr && std::ranges::find(rings, ring) == rings.end()) rings.push_back(ring);
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
  for (auto& [ring, filling] : filling_) {  // other ranks wait for these operations
    if (std::exchange(filling, nullptr) != nullptr) AbortRing(ring, why);
  }
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
