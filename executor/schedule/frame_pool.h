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

namespace penstock::exec {

class FramePool {
 public:
  explicit FramePool(std::size_t idle_max) : idle_max_(idle_max) {}

  // Returns an idle frame already bound to `scope` that accepts `supplied`, or null. Allocates nothing and
  // looks up no name: the fast path of every step after warm-up. The frame has memory.
  std::unique_ptr<Frame> TakeBound(const Scope& scope, const Supplied& supplied);
  // Returns an idle frame that accepts `supplied` and the variables of `binding`, in any scope, or null.
  std::unique_ptr<Frame> TakeAccepting(const Supplied& supplied, const ScopeBinding& binding);
  // Lends memory to a new frame.
  void Lend(Frame& frame);
  // Returns a frame to the pool, and its memory. If more than idle_max are idle, drops the one that was used
  // longest ago.
  void Give(std::unique_ptr<Frame> frame);
  // Drops the idle frames. Their memory stays for others.
  void Clear();

 private:
  template <typename Accepts>
  std::unique_ptr<Frame> TakeIf(Accepts accepts);
  FrameMemory TakeMemory(const FrameMemory& wanted);

  std::size_t idle_max_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Frame>> idle_;  // most recently used last
  std::vector<FrameMemory> spare_;            // not in use; most recently used last
};

}  // namespace penstock::exec
