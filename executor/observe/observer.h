// Records and counts a process's work: the recorder's events, and for each peer counters of messages, bytes
// and waits. The receipt at the end of a job, /metrics and reports use the same numbers.
//
//   Observer observer(recorder);                                      // one per process, or per test
//   PeerNotes notes(&observer, "pserver 10.0.0.1:6174");              // of one connection
//   notes.Sent(bytes);  notes.Record(EventKind::kPushSent, step, notes.Name("w@GRAD"), bytes);
//
// A PeerNotes without an observer does nothing, so its users need not check for null. Counting is an atomic
// addition. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "executor/observe/recorder.h"
#include "executor/observe/trace/tracer.h"

namespace penstock::observe {

// Counters for one peer. Bytes are those of tensors and ids; the overhead is some 60 bytes a message.
struct PeerCounts {
  std::uint64_t messages_out = 0, messages_in = 0;
  std::uint64_t bytes_out = 0, bytes_in = 0;
  std::uint64_t resent = 0;    // messages sent again because no answer came
  std::uint64_t repeats = 0;   // duplicate messages, dropped
  std::uint64_t connects = 0;  // connections begun, or arrivals of a trainer
  // Of a trainer's compressed gradients: bytes as sent, and as float32.
  std::uint64_t compressed = 0, compressed_from = 0;
  // In a trainer: waits that ended with a message of this server. In a synchronous server: the time from the
  // second-to-last trainer's end of a step to this trainer's, if this trainer was the last.
  std::uint64_t waits = 0;
  Nanoseconds waited{0};
};

// Bucket b counts gradients with b updates (of any trainer) between the pull they were computed from and
// their own update; the last bucket counts all larger numbers.
constexpr std::size_t kStalenessBuckets = 17;
using StalenessHistogram = std::array<std::uint64_t, kStalenessBuckets>;

// Rows of tables whose rows enter and are evicted by a policy (executor/table/row_life.h).
struct RowCounts {
  std::uint64_t entered = 0, rejected = 0, evicted = 0;
};

// Rows of tables that are kept on disk beyond a budget (executor/table/cold_tier.h).
struct ColdRowCounts {
  std::uint64_t hot = 0, cold = 0, file_bytes = 0;  // now
  std::uint64_t asked = 0, fetched = 0;             // ids looked for; rows that had to be read from disk
  std::uint64_t written = 0;
};

// Rows of tables that a trainer asked for before the step that looks them up (RpcClient::PullRowsAhead).
struct AheadCounts {
  std::uint64_t used = 0, unused = 0;  // requests; unused: the step looked up others
  Nanoseconds hidden{0};               // the time that the used ones took beside other work
};

// All counters at one moment.
struct Counts {
  struct Peer {
    std::string name;
    PeerCounts counts;
    Nanoseconds silent{0};  // since the last message from it
  };
  Nanoseconds up{0};          // since the observer was made
  std::uint64_t steps = 0;    // of a trainer: ended steps; of a server: the highest that a trainer has ended
  std::uint64_t updates = 0;  // optimize blocks run
  // The time that communication blocked the trainer's own thread, and its communicator's threads.
  Nanoseconds exposed{0}, in_background{0};
  std::uint64_t staleness_sum = 0;
  StalenessHistogram staleness{};
  RowCounts rows;
  ColdRowCounts cold_rows;
  AheadCounts ahead;
  std::vector<Peer> peers;

  PeerCounts Total() const;
  std::uint64_t staleness_count() const;
};

class Observer;

// The atomic form of PeerCounts. Its address is stable.
struct Peer {
  Peer(Observer& observer, std::string name, NameId id, trace::NameId traced)
      : observer(observer), name(std::move(name)), id(id), traced(traced) {}

  Observer& observer;
  const std::string name;
  const NameId id;
  const trace::NameId traced;  // in the trace, if there is one
  std::atomic<std::uint64_t> messages_out{0}, messages_in{0}, bytes_out{0}, bytes_in{0}, resent{0},
      repeats{0}, connects{0}, compressed{0}, compressed_from{0}, waits{0}, waited_ns{0}, heard_ns{0};
};

class Observer {
 public:
  explicit Observer(Recorder& recorder, const Clock& clock = CoarseClock(), trace::Tracer* tracer = nullptr);

  Recorder& recorder() { return recorder_; }
  // The trace of this process; null if there is none.
  trace::Tracer* tracer() const { return tracer_; }
  const Clock& clock() const { return clock_; }
  Peer& PeerNamed(const std::string& name);  // the same for the same name
  void SetSteps(std::uint64_t steps);        // never decreases
  void CountUpdate() { updates_.fetch_add(1, std::memory_order_relaxed); }
  void CountStaleness(std::uint64_t versions);
  void CountRows(const RowCounts& more);
  void CountColdRows(const ColdRowCounts& more);  // differences modulo 2^64
  void CountLookupAhead(bool used, Nanoseconds hidden);
  // Counts a wait of a thread of this process that a message of `last` ended; null: something else ended it.
  void CountWait(Nanoseconds waited, Peer* last);
  Counts Now() const;

  // The peer whose message last ended a wait.
  std::atomic<Peer*> moved_by{nullptr};

 private:
  Recorder& recorder_;
  const Clock& clock_;
  trace::Tracer* const tracer_;
  const Nanoseconds began_;
  std::atomic<std::uint64_t> steps_{0}, updates_{0}, staleness_sum_{0};
  std::atomic<std::int64_t> exposed_ns_{0}, in_background_ns_{0};
  std::array<std::atomic<std::uint64_t>, kStalenessBuckets> staleness_{};
  std::atomic<std::uint64_t> rows_entered_{0}, rows_rejected_{0}, rows_evicted_{0};
  std::atomic<std::uint64_t> rows_hot_{0}, rows_cold_{0}, cold_bytes_{0}, rows_asked_{0}, rows_fetched_{0},
      rows_written_{0};
  std::atomic<std::uint64_t> ahead_used_{0}, ahead_unused_{0};
  std::atomic<std::int64_t> hidden_ns_{0};
  mutable std::mutex mutex_;  // guards the set of peers
  std::deque<Peer> peers_;
};

// Marks the calling thread, while in scope, as a thread of a communicator, whose waits do not block training.
class BackgroundThread {
 public:
  BackgroundThread();
  ~BackgroundThread();
  static bool IsThis();
};

// Records and counts for one connection. Copyable; without an observer, every call does nothing.
class PeerNotes {
 public:
  PeerNotes() = default;
  PeerNotes(Observer* observer, const std::string& peer)
      : peer_(observer == nullptr ? nullptr : &observer->PeerNamed(peer)) {}

  NameId Name(std::string_view name) const {
    return peer_ == nullptr ? 0 : peer_->observer.recorder().Intern(name);
  }
  void Record(EventKind kind, std::uint64_t step, NameId variable = 0, std::uint64_t bytes = 0) const {
    if (peer_ != nullptr) peer_->observer.recorder().Record(kind, step, peer_->id, variable, bytes);
  }
  void Sent(std::uint64_t bytes) const {
    if (peer_ == nullptr) return;
    Add(peer_->messages_out, 1);
    Add(peer_->bytes_out, bytes);
  }
  // Counts a gradient of `from` bytes that travels in `bytes`.
  void Compressed(std::uint64_t bytes, std::uint64_t from) const {
    if (peer_ == nullptr) return;
    Add(peer_->compressed, bytes);
    Add(peer_->compressed_from, from);
  }
  void Received(std::uint64_t bytes) const {
    if (peer_ == nullptr) return;
    Add(peer_->messages_in, 1);
    Add(peer_->bytes_in, bytes);
    peer_->heard_ns.store(static_cast<std::uint64_t>(peer_->observer.clock().Now().count()),
                          std::memory_order_relaxed);
  }
  void Resent() const {
    if (peer_ != nullptr) Add(peer_->resent, 1);
  }
  void Repeated() const {
    if (peer_ != nullptr) Add(peer_->repeats, 1);
  }
  void Connected() const {
    if (peer_ != nullptr) Add(peer_->connects, 1);
  }
  void Moved() const {
    if (peer_ != nullptr) peer_->observer.moved_by.store(peer_, std::memory_order_relaxed);
  }
  // Counts time for which this process, or another trainer, waited for this peer.
  void WaitedFor(Nanoseconds waited) const {
    if (peer_ == nullptr) return;
    Add(peer_->waits, 1);
    Add(peer_->waited_ns, static_cast<std::uint64_t>(waited.count()));
  }
  Observer* observer() const { return peer_ == nullptr ? nullptr : &peer_->observer; }

 private:
  static void Add(std::atomic<std::uint64_t>& count, std::uint64_t more) {
    count.fetch_add(more, std::memory_order_relaxed);
  }

  Peer* peer_ = nullptr;
};

}  // namespace penstock::observe
