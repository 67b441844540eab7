// What holds for the thread of a run while it is in progress.
#pragma once

#include <atomic>
#include <functional>

#include "executor/schedule/cancellation.h"

namespace penstock::exec {

// Sets the size of OpenMP's team, which some of oneDNN's primitives use, for one run on this thread.
class TeamSize {
 public:
  explicit TeamSize(int threads);
  ~TeamSize();
  TeamSize(const TeamSize&) = delete;
  TeamSize& operator=(const TeamSize&) = delete;

 private:
  const int before_;
};

// Counts a run from its very beginning, so that a Cancel during compilation is not lost. A run that a kernel
// starts on the same thread belongs to the kernel's run: a Cancel between two rounds of a loop stops the
// loop.
class Running {
 public:
  // `interrupted` must outlive the run; empty: nothing is polled.
  Running(std::atomic<int>& count, const CancellationSource& source,
          const std::function<bool()>& interrupted = {});
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  const Cancellation& cancellation() const { return cancellation_; }

 private:
  std::atomic<int>& count_;
  const Running* const outer_;
  const Cancellation cancellation_;
};

}  // namespace penstock::exec
