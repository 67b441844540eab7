// When the next checkpoint is due in a job without an interval, and how far ahead the servers choose its
// step.
//
//   CutClock clock;
//   clock.Begin(now, {.share = 0.03, .least = std::chrono::seconds(10)});
//   clock.Steps(now, 40);                 // at each tick
//   clock.IsDue(now);                     // 10 s after the begin
//   clock.Took(now, std::chrono::milliseconds(900));   // one was made: the next is due 30 s after its begin
//
// Times are longer than what training loses, because copying and writing go on beside it. Thread-safe for one
// thread that calls Took and another that calls the rest.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <utility>

#include "framework/runtime/clock.h"

namespace penstock::pserver {

class CutClock {
 public:
  struct Limits {
    double share = 0.03;  // of the time
    Nanoseconds least{0};
  };
  void Begin(Nanoseconds now, const Limits& limits) {
    limits_ = limits;
    due_ = (now + limits.least).count();
  }
  bool IsDue(Nanoseconds now) const { return now.count() >= due_; }
  // One that began so long ago is written, here or on the slowest server.
  void Took(Nanoseconds now, Nanoseconds took) {
    const double every = static_cast<double>(took.count()) / limits_.share;
    due_ = (now - took).count() +
           std::max<std::int64_t>(limits_.least.count(), static_cast<std::int64_t>(every));
  }
  // The steps that may have begun here by now.
  void Steps(Nanoseconds now, std::uint64_t begun) {
    seen_.emplace_back(now, begun);
    while (seen_.size() > 2 && seen_[1].first < now - kAgreement) seen_.pop_front();
  }
  // The steps that follow while the servers agree on one, so that none has to wait.
  std::uint64_t Ahead() const {
    return kLeastAhead + (seen_.empty() ? 0 : seen_.back().second - seen_.front().second);
  }

 private:
  static constexpr Nanoseconds kAgreement = std::chrono::seconds(4);  // a few ticks of all servers
  static constexpr std::uint64_t kLeastAhead = 2;
  Limits limits_;
  std::atomic<std::int64_t> due_ = 0;
  std::deque<std::pair<Nanoseconds, std::uint64_t>> seen_;
};

}  // namespace penstock::pserver
