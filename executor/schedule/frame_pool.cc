#include "executor/schedule/frame_pool.h"

#include <algorithm>
#include <utility>

namespace penstock::exec {

template <typename Accepts>
std::unique_ptr<Runnable> FramePool::TakeIf(Accepts accepts) {
  std::unique_ptr<Runnable> taken;
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = idle_.size(); i-- > 0 && taken == nullptr;) {
      if (!accepts(idle_[i]->frame)) continue;
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

void FramePool::Lend(Runnable& runnable) {
  const Specialisation& plan = runnable.frame.specialisation();
  FrameMemory memory = TakeMemory(runnable.frame.memory());
  if (!memory.Holds(plan)) {
    const std::size_t arena = memory.arena == nullptr ? 0 : memory.arena->bytes();
    const std::size_t workspace = memory.workspace == nullptr ? 0 : memory.workspace->bytes();
    {
      const std::lock_guard lock(mutex_);
      for (const auto& idle : idle_) {
        if (idle->frame.memory().arena == memory.arena) idle->frame.ReleaseMemory();
      }
    }
    memory = {};  // freed before more is allocated
    memory.arena = Buffer::Allocate(std::max(arena, plan.arena_bytes));
    memory.workspace = Buffer::Allocate(std::max(workspace, plan.workspace_bytes));
  }
  runnable.frame.UseMemory(memory);
}

std::unique_ptr<Runnable> FramePool::TakeBound(const Scope& scope, std::span<const Feed> feeds) {
  return TakeIf([&](const Frame& frame) {
    return frame.binding().IsOf(scope) && frame.Accepts(feeds, frame.binding());
  });
}

std::unique_ptr<Runnable> FramePool::TakeAccepting(std::span<const Feed> feeds, const ScopeBinding& binding) {
  return TakeIf([&](const Frame& frame) { return frame.Accepts(feeds, binding); });
}

void FramePool::Give(std::unique_ptr<Runnable> runnable) {
  std::unique_ptr<Runnable> dropped;  // destroyed outside the lock
  const std::lock_guard lock(mutex_);
  spare_.push_back(runnable->frame.memory());
  idle_.push_back(std::move(runnable));
  if (idle_.size() <= idle_max_) return;
  dropped = std::move(idle_.front());
  idle_.erase(idle_.begin());
}

}  // namespace penstock::exec
