// Which step a trainer is in, and how much of what it has handed over is still under way: counted as it
// changes, so that no question looks at variables or servers.
//
//   steps.BeginPush(steps.step());  ...  steps.EndStep();
//   steps.EarlierPushesDone(1);                              // false
//   steps.EndPush(0);                                        // true: now somebody may go on
//   steps.EarlierPushesDone(1);                              // true
//
// Thread-safe; its lock is the last of the client's (session.h) and is held for a few instructions.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>

namespace penstock::client {

// What is waited for as a whole, whatever step it is of.
enum class Work : std::uint8_t { kFirstValues, kPulls, kRows, kSaves, kCompletes };

class StepTracker {
 public:
  std::uint64_t step() const { return step_.load(std::memory_order_acquire); }
  void EndStep();

  void Begin(Work work) { Open(work).fetch_add(1, std::memory_order_relaxed); }
  // Whether nothing of the kind is left.
  bool End(Work work) { return Open(work).fetch_sub(1, std::memory_order_acq_rel) == 1; }
  bool Done(Work work) const { return open_[Index(work)].load(std::memory_order_acquire) == 0; }

  // A gradient, or a message of it, of the open step or of one that has more under way.
  void BeginPush(std::uint64_t step);
  // Whether this was the last of all steps up to `step`, and that one has ended.
  bool EndPush(std::uint64_t step);
  // Nothing of the steps before `step` is under way, and no initial value.
  bool EarlierPushesDone(std::uint64_t step) const;

 private:
  static std::size_t Index(Work work) { return static_cast<std::size_t>(work); }
  std::atomic<std::size_t>& Open(Work work) { return open_[Index(work)]; }

  std::array<std::atomic<std::size_t>, 5> open_{};
  std::atomic<std::uint64_t> step_{0};
  mutable std::mutex mutex_;  // of what follows
  // Pushes under way, by step from `first_` on; the first of them are not 0.
  std::deque<std::size_t> pushes_;
  std::uint64_t first_ = 0;
};

}  // namespace penstock::client
