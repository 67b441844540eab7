// Records the last 4,096 events between a process and its peers: always on, so that a hang or a failure can
// be explained afterwards.
//
//   Recorder recorder(FlightMemory::FromEnvironment());
//   const NameId w = recorder.Intern("w@GRAD"), peer = recorder.Intern("pserver 10.0.0.1:6174");
//   recorder.Record(EventKind::kPushSent, step, peer, w, bytes);
//
// Record takes some 20 ns, without a lock or an allocation; the recorded time is that of the clock's last
// tick (CoarseClock). Intern takes a lock; call it during set-up. Thread-safe.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "executor/observe/flight_memory.h"
#include "framework/runtime/clock.h"

namespace penstock::observe {

using NameId = std::uint32_t;  // 0: no name

enum class EventKind : std::uint8_t {
  kNone,
  // Progress of training.
  kStepEnded,      // by this trainer, or by the peer if that is a trainer
  kPushSent,       // a message of a gradient or an initial value
  kPushTaken,      // the server has acknowledged it
  kPullAnswered,   // version `step` of a parameter has arrived
  kGradientTaken,  // server: begins to merge a gradient of the peer
  kBlockRun,       // server: the update of `step` is done
  kPublished,      // server: sends version `step` to the peer
  kPeerCame,
  // No progress by themselves.
  kPullAsked,
  kPeerLeft,
  kWaitBegun,  // a thread of this process waits
  kWaitEnded,
  kWaitsFor,  // a wait that lasts reports its peer and variable
};
constexpr EventKind kLastOfProgress = EventKind::kPeerCame;
const char* NameOf(EventKind kind);  // "push sent"

// For tests and reports of this process.
struct RecordedEvent {
  EventKind kind = EventKind::kNone;
  Nanoseconds time{0};
  std::uint64_t step = 0, bytes = 0;
  std::string peer, variable;
};

class Recorder {
 public:
  explicit Recorder(FlightMemory memory, const Clock& clock = CoarseClock());

  // The id of a name; equal names have the same id. 0 once the names take a million bytes.
  NameId Intern(std::string_view name);

  void Record(EventKind kind, std::uint64_t step, NameId peer = 0, NameId variable = 0,
              std::uint64_t bytes = 0) noexcept {
    if (block_ == nullptr) return;
    constexpr auto kRelaxed = std::memory_order_relaxed;
    const auto now = static_cast<std::uint64_t>(clock_.Now().count());
    const std::uint64_t number = block_->next.fetch_add(1, kRelaxed);
    FlightEvent& event = block_->ring[number % FlightBlock::kEvents];
    event.stamp.store(0, kRelaxed);
    event.time_ns.store(now, std::memory_order_release);  // release: after the stamp of 0
    event.step.store(step, std::memory_order_release);
    event.bytes.store(bytes, std::memory_order_release);
    event.names.store(variable | std::uint64_t{peer} << 32, std::memory_order_release);
    event.kind.store(static_cast<std::uint64_t>(kind), std::memory_order_release);
    event.stamp.store(number + 1, std::memory_order_release);
    if (kind <= kLastOfProgress) block_->progress_ns.store(now, kRelaxed);
  }

  // The stored events, oldest first, except those being overwritten during the call.
  std::vector<RecordedEvent> Events() const;

 private:
  std::string NameAt(NameId id) const;

  const FlightMemory memory_;
  FlightBlock* const block_;  // null: nothing is recorded
  const Clock& clock_;
  std::mutex mutex_;  // guards what follows
  std::map<std::string, NameId, std::less<>> names_;
  std::size_t names_end_ = 1;
};

}  // namespace penstock::observe
