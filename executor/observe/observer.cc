#include "executor/observe/observer.h"

#include <algorithm>
#include <numeric>

namespace penstock::observe {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

thread_local int in_background = 0;

Nanoseconds Span(std::uint64_t nanoseconds) { return Nanoseconds(static_cast<std::int64_t>(nanoseconds)); }

}  // namespace

BackgroundThread::BackgroundThread() { ++in_background; }
BackgroundThread::~BackgroundThread() { --in_background; }
bool BackgroundThread::IsThis() { return in_background > 0; }

PeerCounts Counts::Total() const {
  PeerCounts total;
  for (const Peer& peer : peers) {
    const PeerCounts& one = peer.counts;
    total.messages_out += one.messages_out;
    total.messages_in += one.messages_in;
    total.bytes_out += one.bytes_out;
    total.bytes_in += one.bytes_in;
    total.resent += one.resent;
    total.repeats += one.repeats;
    total.connects += one.connects;
    total.compressed += one.compressed;
    total.compressed_from += one.compressed_from;
    total.waits += one.waits;
    total.waited += one.waited;
  }
  return total;
}

std::uint64_t Counts::staleness_count() const {
  return std::accumulate(staleness.begin(), staleness.end(), std::uint64_t{0});
}

Observer::Observer(Recorder& recorder, const Clock& clock, trace::Tracer* tracer)
    : recorder_(recorder), clock_(clock), tracer_(tracer), began_(clock.Now()) {}

Peer& Observer::PeerNamed(const std::string& name) {
  const std::lock_guard lock(mutex_);
  for (Peer& peer : peers_) {
    if (peer.name == name) return peer;
  }
  return peers_.emplace_back(*this, name, recorder_.Intern(name),
                             tracer_ == nullptr ? 0 : tracer_->Intern(name));
}

void Observer::SetSteps(std::uint64_t steps) {
  std::uint64_t before = steps_.load(kRelaxed);
  while (before < steps && !steps_.compare_exchange_weak(before, steps, kRelaxed)) {
  }
}

void Observer::CountStaleness(std::uint64_t versions) {
  staleness_sum_.fetch_add(versions, kRelaxed);
  staleness_[std::min<std::uint64_t>(versions, kStalenessBuckets - 1)].fetch_add(1, kRelaxed);
}

void Observer::CountRows(const RowCounts& more) {
  rows_entered_.fetch_add(more.entered, kRelaxed);
  rows_rejected_.fetch_add(more.rejected, kRelaxed);
  rows_evicted_.fetch_add(more.evicted, kRelaxed);
}

void Observer::CountColdRows(const ColdRowCounts& more) {
  rows_hot_.fetch_add(more.hot, kRelaxed);
  rows_cold_.fetch_add(more.cold, kRelaxed);
  cold_bytes_.fetch_add(more.file_bytes, kRelaxed);
  rows_asked_.fetch_add(more.asked, kRelaxed);
  rows_fetched_.fetch_add(more.fetched, kRelaxed);
  rows_written_.fetch_add(more.written, kRelaxed);
}

void Observer::CountLookupAhead(bool used, Nanoseconds hidden) {
  (used ? ahead_used_ : ahead_unused_).fetch_add(1, kRelaxed);
  if (used) hidden_ns_.fetch_add(hidden.count(), kRelaxed);
}

void Observer::CountWait(Nanoseconds waited, Peer* last) {
  (BackgroundThread::IsThis() ? in_background_ns_ : exposed_ns_).fetch_add(waited.count(), kRelaxed);
  if (last == nullptr) return;
  last->waits.fetch_add(1, kRelaxed);
  last->waited_ns.fetch_add(static_cast<std::uint64_t>(waited.count()), kRelaxed);
}

Counts Observer::Now() const {
  Counts now;
  const Nanoseconds time = clock_.Now();
  now.up = time - began_;
  now.steps = steps_.load(kRelaxed);
  now.updates = updates_.load(kRelaxed);
  now.exposed = Nanoseconds(exposed_ns_.load(kRelaxed));
  now.in_background = Nanoseconds(in_background_ns_.load(kRelaxed));
  now.staleness_sum = staleness_sum_.load(kRelaxed);
  for (std::size_t b = 0; b < kStalenessBuckets; ++b) now.staleness[b] = staleness_[b].load(kRelaxed);
  now.rows = {.entered = rows_entered_.load(kRelaxed),
              .rejected = rows_rejected_.load(kRelaxed),
              .evicted = rows_evicted_.load(kRelaxed)};
  now.cold_rows = {.hot = rows_hot_.load(kRelaxed),
                   .cold = rows_cold_.load(kRelaxed),
                   .file_bytes = cold_bytes_.load(kRelaxed),
                   .asked = rows_asked_.load(kRelaxed),
                   .fetched = rows_fetched_.load(kRelaxed),
                   .written = rows_written_.load(kRelaxed)};
  now.ahead = {.used = ahead_used_.load(kRelaxed),
               .unused = ahead_unused_.load(kRelaxed),
               .hidden = Nanoseconds(hidden_ns_.load(kRelaxed))};
  const std::lock_guard lock(mutex_);
  for (const Peer& peer : peers_) {
    const std::uint64_t heard = peer.heard_ns.load(kRelaxed);
    now.peers.push_back({.name = peer.name,
                         .counts = {.messages_out = peer.messages_out.load(kRelaxed),
                                    .messages_in = peer.messages_in.load(kRelaxed),
                                    .bytes_out = peer.bytes_out.load(kRelaxed),
                                    .bytes_in = peer.bytes_in.load(kRelaxed),
                                    .resent = peer.resent.load(kRelaxed),
                                    .repeats = peer.repeats.load(kRelaxed),
                                    .connects = peer.connects.load(kRelaxed),
                                    .compressed = peer.compressed.load(kRelaxed),
                                    .compressed_from = peer.compressed_from.load(kRelaxed),
                                    .waits = peer.waits.load(kRelaxed),
                                    .waited = Span(peer.waited_ns.load(kRelaxed))},
                         .silent = heard == 0 ? now.up : time - Span(heard)});
  }
  std::sort(now.peers.begin(), now.peers.end(),
            [](const Counts::Peer& a, const Counts::Peer& b) { return a.name < b.name; });
  return now;
}

}  // namespace penstock::observe
