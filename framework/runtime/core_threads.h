// Runs independent pieces of work on all of the machine's cores.
//
//   CoreThreads threads;
//   Transpile(AllOps(), main, startup, config, {.threads = &threads});
#pragma once

#include "framework/base/thread_pool.h"

namespace penstock {

// Threads live only during a ForEach: its pieces are large, and calls are rare.
class CoreThreads : public ThreadPool {
 public:
  int threads() const override;  // one for each core
  void ForEach(std::size_t count, const std::function<void(std::size_t)>& work) override;
};

}  // namespace penstock
