// A trainer's current step, and how much of the work it handed over is still in flight. Counters are updated
// on each change, so queries need not look at variables or servers.
//
//   steps.BeginPush(steps.step());  ...  steps.EndStep();
//   steps.EarlierPushesDone(1);                              // false
//   steps.EndPush(0);                                        // true: a waiting thread may continue
//   steps.EarlierPushesDone(1);                              // true
//
// Thread-safe; its lock is the last in the client's order (session.h) and is held for a few instructions.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>

namespace penstock::client {

// Kinds of work that are waited for as a whole, across steps.
enum class Work : std::uint8_t { kFirstValues, kPulls, kRows, kSaves, kCompletes };

class StepTracker {
 public:
  std::uint64_t step() const { return step_.load(std::memory_order_acquire); }
  void EndStep();

  void Begin(Work work) { Open(work).fetch_add(1, std::memory_order_relaxed); }
  // Returns whether no work of the kind is left.
  bool End(Work work) { return Open(work).fetch_sub(1, std::memory_order_acq_rel) == 1; }
  bool Done(Work work) const { return open_[Index(work)].load(std::memory_order_acquire) == 0; }

  // While a thread waits for one of several pulls, each arrival is signalled, not the last one alone.
  void SignalEachPull(bool on) { wants_each_pull_.fetch_add(on ? 1 : -1, std::memory_order_acq_rel); }
  bool SignalsEachPull() const { return wants_each_pull_.load(std::memory_order_acquire) > 0; }
  // Before any work: the servers name the step with which this trainer begins.
  void AwaitJoin() { joined_.store(false, std::memory_order_release); }
  void Join(std::uint64_t step);
  bool joined() const { return joined_.load(std::memory_order_acquire); }
  std::uint64_t joined_at() const;  // this process has sent nothing of the steps below
  // The job's complete steps before this start of it, as the servers say. Returns false if an earlier server
  // has said otherwise.
  bool TakeFirstStep(std::uint64_t first_step);
  // These, and those that this trainer's last process has completed. nullopt: not known yet.
  std::optional<std::uint64_t> first_step();
  // Whether first_step() was called too early, so that its caller waits.
  bool first_step_awaited() const;

  // Counts a gradient, or one of its messages. `step`: the open step, or one with other pushes in flight.
  void BeginPush(std::uint64_t step);
  // Returns whether `step` has ended and this was the last push in flight of `step` and all earlier steps.
  bool EndPush(std::uint64_t step);
  // Whether no push of a step before `step`, and no initial value, is in flight.
  bool EarlierPushesDone(std::uint64_t step) const;

 private:
  static std::size_t Index(Work work) { return static_cast<std::size_t>(work); }
  std::atomic<std::size_t>& Open(Work work) { return open_[Index(work)]; }

  std::array<std::atomic<std::size_t>, 5> open_{};
  std::atomic<std::uint64_t> step_{0};
  std::atomic<int> wants_each_pull_{0};  // threads
  std::atomic<bool> joined_{true};
  mutable std::mutex mutex_;  // guards what follows
  // Pushes in flight, by step from `first_` on; the first entry is not 0.
  std::deque<std::size_t> pushes_;
  std::uint64_t first_ = 0;
  std::uint64_t joined_at_ = 0;
  std::optional<std::uint64_t> first_step_;
  bool first_step_awaited_ = false;
};

}  // namespace penstock::client
