// How a rank waits for others, and how it learns that the wait cannot succeed.
//
//   Peers peers(arena, rank, [](int rank) { return false; }, 10s);
//   peers.Meet(turn, op);                                         // all ranks have come here
//   peers.Until(arena.line(rank).bell, ready, {{from}}, signature);  // a message has come
//
// A wait polls the value for some tens of microseconds, yielding meanwhile; then it sleeps until the value
// changes. Ten times a second it checks that the ranks it waits for are still there. A failure that one rank
// finds reaches all: it is written into the arena, once. Abort may be called from any thread, the rest from
// one thread at a time.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <span>

#include "executor/collective/arena.h"
#include "executor/collective/rank_names.h"
#include "executor/observe/report_times.h"
#include "framework/base/status.h"

namespace penstock::collective {

// Whether the process of a rank is gone.
using GoneCheck = std::function<bool(int rank)>;

class Peers {
 public:
  Peers(Arena arena, int rank, GoneCheck gone, Nanoseconds report_after, RankNames names = {});

  // Arrives at the end of `turn`, and waits for all ranks. Errors as Until.
  Status Meet(std::uint32_t turn, const Signature& what);

  // Waits until `ready()`; whoever makes it true changes `signal` afterwards. `awaited`: the ranks that are
  // needed for that. kUnavailable E-collective-peer-lost, E-collective-peer-left; the status given to Abort.
  template <typename Ready>
  Status Until(Signal& signal, const Ready& ready, std::span<const int> awaited, const Signature& what) {
    for (int look = 0; look < kLooks; ++look) {
      if (ready()) return OkStatus();
      look < kLooksInPlace ? Relax() : Yield();
    }
    Sleeper sleeper{.times = observe::ReportTimes(report_after_)};
    while (true) {
      const std::uint32_t seen = signal.value.load();
      if (ready()) return OkStatus();
      PENSTOCK_RETURN_IF_ERROR(Failure());
      const std::optional<Status> in_vain = InVain(awaited, what, sleeper);
      // What a rank did before it went still counts.
      if (in_vain) return ready() ? OkStatus() : Fail(*in_vain);
      Sleep(signal, seen, awaited, what, sleeper);
    }
  }

  // The first failure, if there is one.
  Status Failure() const;
  // Records `why` as every rank's first failure if there is none; returns the first failure.
  Status Fail(const Status& why);
  // This rank fails with `why`, the others with its text.
  void Abort(const Status& why);
  // This rank will wait for no other rank any more.
  void Leave();

 private:
  struct Sleeper {
    observe::ReportTimes times;
    Nanoseconds began{0};  // 0: has not slept yet
  };

  // First a poll of about a microsecond, the delay of a rank with its own core; then some tens of
  // microseconds in which other ranks can have the core, perhaps those awaited. That is faster than waking a
  // sleeper, and ranks that do not sleep get cores of their own from the scheduler.
  static constexpr int kLooksInPlace = 30, kLooks = 130;

  static void Relax();
  static void Yield();
  void Sleep(Signal& signal, std::uint32_t seen, std::span<const int> awaited, const Signature& what,
             Sleeper& sleeper);
  std::optional<Status> InVain(std::span<const int> awaited, const Signature& what,
                               const Sleeper& sleeper) const;
  void WakeAll();

  const Arena arena_;
  const int rank_;
  const GoneCheck gone_;
  const Nanoseconds report_after_;
  const RankNames names_;
  std::atomic<bool> aborted_ = false;
  mutable std::mutex mutex_;
  Status abort_reason_;
};

}  // namespace penstock::collective
