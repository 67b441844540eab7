#include "executor/schedule/frame_pool.h"

namespace penstock::exec {

template <typename Accepts>
std::unique_ptr<Runnable> FramePool::TakeIf(Accepts accepts) {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = idle_.size(); i-- > 0;) {
    if (!accepts(idle_[i]->frame)) continue;
    std::unique_ptr<Runnable> taken = std::move(idle_[i]);
    idle_.erase(idle_.begin() + static_cast<std::ptrdiff_t>(i));
    return taken;
  }
  return nullptr;
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
  idle_.push_back(std::move(runnable));
  if (idle_.size() <= idle_max_) return;
  dropped = std::move(idle_.front());
  idle_.erase(idle_.begin());
}

}  // namespace penstock::exec
