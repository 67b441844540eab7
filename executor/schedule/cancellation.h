// Lets another thread stop the runs that are in progress. Runs that start later are not touched.
#pragma once

#include <atomic>
#include <cstdint>

namespace penstock {

class CancellationSource {
 public:
  void Cancel() { epoch_.fetch_add(1); }

 private:
  friend class Cancellation;
  std::atomic<std::uint64_t> epoch_{0};
};

// One run's view of the source, taken when the run begins.
class Cancellation {
 public:
  explicit Cancellation(const CancellationSource& source) : source_(source), epoch_(source.epoch_.load()) {}
  bool IsOf(const CancellationSource& source) const { return &source_ == &source; }
  bool requested() const { return source_.epoch_.load(std::memory_order_relaxed) != epoch_; }

 private:
  const CancellationSource& source_;
  std::uint64_t epoch_;
};

}  // namespace penstock
