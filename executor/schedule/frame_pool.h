// The idle frames of one compiled block: an LRU cache of shape specialisations. Thread-safe.
//
// Frames share memory: as many arenas exist as runs were ever in progress at once, each as large as the
// largest frame that used it. So a batch of a new shape touches no new memory, and many cached shapes need no
// more than one.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "executor/schedule/frame.h"
#include "executor/schedule/late_steps.h"

namespace penstock::exec {

// A frame and the state of its runs.
struct Runnable {
  explicit Runnable(std::unique_ptr<Specialisation> specialisation) : frame(std::move(specialisation)) {}
  Frame frame;
  LateSteps late;
};

class FramePool {
 public:
  explicit FramePool(std::size_t idle_max) : idle_max_(idle_max) {}

  // Returns an idle frame already bound to `scope` that accepts `feeds`, or null. Allocates nothing and looks
  // up no name: the fast path of every step after warm-up. The frame has memory.
  std::unique_ptr<Runnable> TakeBound(const Scope& scope, std::span<const Feed> feeds);
  // Returns an idle frame that accepts `feeds` and the variables of `binding`, in any scope, or null.
  std::unique_ptr<Runnable> TakeAccepting(std::span<const Feed> feeds, const ScopeBinding& binding);
  // Lends memory to a new frame.
  void Lend(Runnable& runnable);
  // Returns a frame to the pool, and its memory. If more than idle_max are idle, drops the one that was used
  // longest ago.
  void Give(std::unique_ptr<Runnable> runnable);

 private:
  template <typename Accepts>
  std::unique_ptr<Runnable> TakeIf(Accepts accepts);
  FrameMemory TakeMemory(const FrameMemory& wanted);

  std::size_t idle_max_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Runnable>> idle_;  // most recently used last
  std::vector<FrameMemory> spare_;               // not in use; most recently used last
};

}  // namespace penstock::exec
