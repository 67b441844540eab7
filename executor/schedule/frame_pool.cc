#include "executor/schedule/frame_pool.h"

#include <algorithm>
#include <utility>

namespace penstock::exec {

template <typename Accepts>
std::unique_ptr<Frame> FramePool::TakeIf(Accepts accepts) {
  std::unique_ptr<Frame> taken;
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = idle_.size(); i-- > 0 && taken == nullptr;) {
      if (!accepts(*idle_[i])) continue;
      taken = std::move(idle_[i]);
      idle_.erase(idle_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  if (taken != nullptr) Lend(*taken);
  return taken;
}

// Returns the memory that the frame used last if it is free, else any other; null if none is.
FrameMemory FramePool::TakeMemory(const FrameMemory& wanted) {
  const std::lock_guard lock(mutex_);
  if (spare_.empty()) return {};
  auto found = std::ranges::find(spare_, wanted.arena, &FrameMemory::arena);
  if (found == spare_.end()) found = std::prev(spare_.end());
  FrameMemory memory = std::move(*found);
  spare_.erase(found);
  return memory;
}

void FramePool::Lend(Frame& frame) {
  const Specialisation& plan = frame.specialisation();
  FrameMemory memory = TakeMemory(frame.memory());
  if (!memory.Holds(plan)) {
    const std::size_t arena = memory.arena == nullptr ? 0 : memory.arena->bytes();
    const std::size_t workspace = memory.workspace == nullptr ? 0 : memory.workspace->bytes();
    {
      const std::lock_guard lock(mutex_);
      for (const auto& idle : idle_) {
        if (idle->memory().arena == memory.arena) idle->ReleaseMemory();
      }
    }
    memory = {};  // freed before more is allocated
    memory.arena = Buffer::Allocate(std::max(arena, plan.arena_bytes));
    memory.workspace = Buffer::Allocate(std::max(workspace, plan.workspace_bytes));
  }
  frame.UseMemory(memory);
}

std::unique_ptr<Frame> FramePool::TakeBound(const Scope& scope, const Supplied& supplied) {
  return TakeIf([&](const Frame& frame) {
    return frame.binding().IsOf(scope) && frame.Accepts(supplied, frame.binding());
  });
}

std::unique_ptr<Frame> FramePool::TakeAccepting(const Supplied& supplied, const ScopeBinding& binding) {
  return TakeIf([&](const Frame& frame) { return frame.Accepts(supplied, binding); });
}

void FramePool::Give(std::unique_ptr<Frame> frame) {
  std::unique_ptr<Frame> dropped;  // destroyed outside the lock
  const std::lock_guard lock(mutex_);
  spare_.push_back(frame->memory());
  idle_.push_back(std::move(frame));
  if (idle_.size() <= idle_max_) return;
  dropped = std::move(idle_.front());
  idle_.erase(idle_.begin());
}

void FramePool::Clear() {
  std::vector<std::unique_ptr<Frame>> dropped;  // destroyed outside the lock
  const std::lock_guard lock(mutex_);
  dropped.swap(idle_);
}

}  // namespace penstock::exec
