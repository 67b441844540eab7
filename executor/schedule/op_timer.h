// Times ops, for two users of the same readings of the clock: a profile, while it is on (count and total time
// per op type, and when each op ran), and the trace of the process, if it has one (executor/observe/trace).
//
//   OpTimer timer(SystemClock());
//   Executor executor(AllOps(), {.timer = &timer});
//   timer.Start();
//   ...                                   // runs, on any threads
//   timer.Stop();
//   for (const OpTimes& times : timer.Times()) Print(times.type, times.count, times.total);
//
// The time of an op that runs blocks, such as while, includes the ops of its blocks, which are also counted
// by themselves. Thread-safe. A run checks once whether the timer is on; a timed op costs one reading of the
// clock, in a profile also a lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "executor/observe/trace/tracer.h"
#include "framework/runtime/clock.h"

namespace penstock::exec {

struct OpTimes {
  std::string type;
  std::int64_t count = 0;
  Nanoseconds total{0};
  Nanoseconds min{0};
  Nanoseconds max{0};
};

struct OpEvent {
  std::size_t type = 0;  // index into Times()
  int thread = 0;        // numbered in the order of their first timed op
  Nanoseconds begin{0};  // by the clock
  Nanoseconds end{0};
};

class OpTimer {
 public:
  // Events beyond this number are counted but not stored, to bound the memory of a long run.
  static constexpr std::size_t kEventsMax = std::size_t{1} << 20;

  // `tracer` gets each op too, whether the profile is on or not; null: there is no trace.
  explicit OpTimer(const Clock& clock, trace::Tracer* tracer = nullptr) : clock_(clock), tracer_(tracer) {}

  // Affects runs that begin after the call.
  void Start() { profiles_.store(true, std::memory_order_relaxed); }
  void Stop() { profiles_.store(false, std::memory_order_relaxed); }
  bool profiles() const { return profiles_.load(std::memory_order_relaxed); }
  bool on() const { return tracer_ != nullptr || profiles(); }
  // Discards the profile.
  void Reset();

  Nanoseconds Now() const { return clock_.Now(); }
  // Records an op of this type that has run on the calling thread since `begin`: op `position` of `block`.
  // Returns when it ended.
  Nanoseconds Add(const std::string& type, Nanoseconds begin, int block = 0, int position = 0);
  // Records that the calling thread has run the ops of `block` since `begin`.
  void AddRun(int block, Nanoseconds begin);

  // By type, in the order in which the types first ended.
  std::vector<OpTimes> Times() const;
  // In the order in which the ops ended, at most kEventsMax.
  std::vector<OpEvent> Events() const;
  std::int64_t events_left_out() const;

 private:
  void AddToProfile(const std::string& type, Nanoseconds begin, Nanoseconds end);

  const Clock& clock_;
  trace::Tracer* const tracer_;
  std::atomic<bool> profiles_{false};
  mutable std::mutex mutex_;
  std::vector<OpTimes> times_;
  std::map<std::string, std::size_t> index_;  // into times_
  std::vector<OpEvent> events_;
  std::int64_t left_out_ = 0;
  std::map<std::thread::id, int> threads_;
};

}  // namespace penstock::exec
