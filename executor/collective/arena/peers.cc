#include "executor/collective/arena/peers.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "executor/collective/group/error_lines.h"
#include "executor/collective/group/plain_data.h"
#include "framework/base/log.h"

namespace penstock::collective {
namespace {

constexpr Nanoseconds kLookAfter = std::chrono::milliseconds(100);
// Limits the wait for another process to write the failure, in case it is killed meanwhile.
constexpr Nanoseconds kWritingLimit = std::chrono::milliseconds(100);

}  // namespace

Peers::Peers(Arena arena, int rank, GoneCheck gone, Nanoseconds report_after, RankNames names)
    : arena_(arena),
      rank_(rank),
      gone_(std::move(gone)),
      report_after_(report_after),
      names_(std::move(names)),
      looks_in_place_(arena.ranks() <= sysconf(_SC_NPROCESSORS_ONLN) ? kLooksInPlace
                                                                     : kLooksInPlaceOfSharedCores) {}

Status Peers::Meet(std::uint32_t turn, const Signature& what) {
  const std::uint32_t ended = turn + 1;
  arena_.line(rank_).arrived.Set(ended);
  for (int rank = 0; rank < arena_.ranks(); ++rank) {
    Signal& arrived = arena_.line(rank).arrived;
    const auto is_there = [&] { return static_cast<std::int32_t>(arrived.value.load() - ended) >= 0; };
    if (!is_there()) PENSTOCK_RETURN_IF_ERROR(Until(arrived, is_there, {&rank, 1}, what));
  }
  return OkStatus();
}

void Peers::Relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

void Peers::Yield() { sched_yield(); }

void Peers::Sleep(Signal& signal, std::uint32_t seen, std::span<const int> awaited, const Signature& what,
                  Sleeper& sleeper) {
  if (sleeper.began == Nanoseconds(0)) {
    sleeper.began = SystemClock().Now();
    return signal.Sleep(seen, kLookAfter);
  }
  signal.Sleep(seen, kLookAfter);
  const Nanoseconds lasted = SystemClock().Now() - sleeper.began;
  if (report_after_ <= Nanoseconds(0) || lasted < sleeper.times.next()) return;
  sleeper.times.Pass();
  Log(LogSeverity::kWarning,
      StrCat("waiting ", WholeSeconds(lasted), " s in ", Describe(what, names_), " of rank ", names_(rank_),
             " for rank ", Join(names_(awaited), " and rank ")));
}

std::optional<Status> Peers::InVain(std::span<const int> awaited, const Signature& what,
                                    const Sleeper& sleeper) const {
  for (const int rank : awaited) {
    if (arena_.line(rank).left.load()) {
      return Unavailable("E-collective-peer-left", "rank ", names_(rank),
                         " has left the group: it takes no part in ", Describe(what, names_));
    }
    if (sleeper.began != Nanoseconds(0) && gone_(rank)) {
      return Unavailable("E-collective-peer-lost", "rank ", names_(rank),
                         " is gone: its process ended before it had done ", "its part in ",
                         Describe(what, names_));
    }
  }
  return std::nullopt;
}

Status Peers::Failure() const {
  if (aborted_.load()) {
    const std::lock_guard lock(mutex_);
    return abort_reason_;
  }
  const FailureRecord& record = arena_.failure();
  if (record.state.load() != FailureRecord::kWritten) return OkStatus();
  return FromOtherRank(ReadText(record.id), ReadText(record.message));
}

Status Peers::Fail(const Status& why) {
  FailureRecord& record = arena_.failure();
  std::uint32_t state = FailureRecord::kNone;
  if (record.state.compare_exchange_strong(state, FailureRecord::kBeingWritten)) {
    WriteText(record.id, why.id());
    WriteText(record.message, LinesOf(why));
    record.state.store(FailureRecord::kWritten);
    WakeAll();
    return why;
  }
  const Nanoseconds began = SystemClock().Now();
  while (record.state.load() == FailureRecord::kBeingWritten && SystemClock().Now() - began < kWritingLimit)
    sched_yield();
  const Status first = Failure();
  return first.ok() ? why : first;
}

void Peers::Abort(const Status& why) {
  {
    const std::lock_guard lock(mutex_);
    if (aborted_) return;
    abort_reason_ = why;
  }
  aborted_ = true;
  static_cast<void>(Fail(
      Unavailable("E-collective-peer-left", "rank ", names_(rank_), " has left the group: ", why.message())));
  WakeAll();
}

void Peers::Leave() {
  arena_.line(rank_).left.store(true);
  WakeAll();
}

void Peers::WakeAll() {
  for (int rank = 0; rank < arena_.ranks(); ++rank) {
    arena_.line(rank).arrived.Wake();
    arena_.line(rank).bell.Wake();
  }
}

}  // namespace penstock::collective
