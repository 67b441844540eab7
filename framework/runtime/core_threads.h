// The machine's cores, for pieces of work that do not depend on each other.
//
//   CoreThreads threads;
//   Transpile(AllOps(), main, startup, config, {.threads = &threads});
#pragma once

#include "framework/base/thread_pool.h"

namespace penstock {

// Threads live as long as a ForEach: its pieces are large, and nothing runs between two of them.
class CoreThreads : public ThreadPool {
 public:
  int threads() const override;  // one for each core
  void ForEach(std::size_t count, const std::function<void(std::size_t)>& work) override;
};

}  // namespace penstock
