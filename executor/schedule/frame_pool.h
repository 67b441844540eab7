// The frames of one compiled block that no run uses now: an LRU of shape specialisations. Thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "executor/schedule/frame.h"
#include "executor/schedule/late_steps.h"

namespace penstock::exec {

// A frame with what belongs to its runs.
struct Runnable {
  explicit Runnable(std::unique_ptr<Specialisation> specialisation) : frame(std::move(specialisation)) {}
  Frame frame;
  LateSteps late;
};

class FramePool {
 public:
  explicit FramePool(std::size_t idle_max) : idle_max_(idle_max) {}

  // One that was bound to this scope, unchanged since, and takes these feeds; null if there is none. Takes no
  // map and no string in hand: the way of a step after warm-up.
  std::unique_ptr<Runnable> TakeBound(const Scope& scope, std::span<const Feed> feeds);
  // One that takes these feeds and the variables of this binding, wherever it was bound.
  std::unique_ptr<Runnable> TakeAccepting(std::span<const Feed> feeds, const ScopeBinding& binding);
  // Gives it back. Beyond idle_max the least recently used one goes.
  void Give(std::unique_ptr<Runnable> runnable);

 private:
  template <typename Accepts>
  std::unique_ptr<Runnable> TakeIf(Accepts accepts);

  std::size_t idle_max_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Runnable>> idle_;  // most recently used last
};

}  // namespace penstock::exec
