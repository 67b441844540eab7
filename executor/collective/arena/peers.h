// How a rank waits for other ranks, and detects that a wait cannot succeed because a rank has died, left or
// failed.
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

#include "executor/collective/arena/arena.h"
#include "executor/collective/group/rank_names.h"
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

  // Waits until `ready()` returns true. A rank that makes it true must change `signal` afterwards. `awaited`:
  // the ranks on which that depends. kUnavailable E-collective-peer-lost, E-collective-peer-left; the group's
  // first failure; the status given to Abort.
  template <typename Ready>
  Status Until(Signal& signal, const Ready& ready, std::span<const int> awaited, const Signature& what) {
    for (int look = 0; look < kLooks; ++look) {
      if (ready()) return OkStatus();
      look < looks_in_place_ ? Relax() : Yield();
    }
    Sleeper sleeper{.times = observe::ReportTimes(report_after_)};
    while (true) {
      const std::uint32_t seen = signal.value.load();
      if (ready()) return OkStatus();
      PENSTOCK_RETURN_IF_ERROR(Failure());
      const std::optional<Status> in_vain = InVain(awaited, what, sleeper);
      // What a rank did before it died or left still counts.
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
  // This rank starts no more operations: waits for it end with E-collective-peer-left.
  void Leave();

 private:
  struct Sleeper {
    observe::ReportTimes times;
    Nanoseconds began{0};  // 0: has not slept yet
  };

  // A wait first polls for about a microsecond, the usual delay of a rank that has a core of its own. Then it
  // polls and yields for some tens of microseconds, so other ranks, perhaps the awaited ones, can use the
  // core. That is faster than waking a sleeper, and the scheduler gives ranks that do not sleep cores of
  // their own. If there are more ranks than cores, the awaited rank probably needs this core, so the wait
  // yields sooner: 1 KB of 4 ranks on 2 cores takes 7.3 us instead of 8.4.
  static constexpr int kLooksInPlace = 30, kLooksInPlaceOfSharedCores = 3, kLooks = 130;

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
  const int looks_in_place_;
  std::atomic<bool> aborted_ = false;
  mutable std::mutex mutex_;
  Status abort_reason_;
};

}  // namespace penstock::collective
