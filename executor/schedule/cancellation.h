// Lets another thread stop the runs in progress. Later runs are not affected.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

namespace penstock::exec {

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
  // `interrupted`, if given, is polled too; it must outlive the run, and is called on the run's own thread.
  explicit Cancellation(const CancellationSource& source, const std::function<bool()>* interrupted = nullptr)
      : source_(source), epoch_(source.epoch_.load()), interrupted_(interrupted) {}
  bool IsOf(const CancellationSource& source) const { return &source_ == &source; }
  bool requested() const {
    return source_.epoch_.load(std::memory_order_relaxed) != epoch_ ||
           (interrupted_ != nullptr && (*interrupted_)());
  }

 private:
  const CancellationSource& source_;
  std::uint64_t epoch_;
  const std::function<bool()>* interrupted_;
};

}  // namespace penstock::exec
