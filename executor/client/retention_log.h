// Messages that were sent to one server and may have to be sent again.
//
//   log.Keep(push, contract, now);                                                    // when sent
//   log.Release(KeyOf(protocol::Push{.at = a.at, .step = a.step, .part = a.part}));   // when acknowledged
//   log.SendAgain(now - patience, now, [&](const RetentionLog::Sent& sent) { ... });
//
// An acknowledgement releases the messages that it covers; what a server that makes checkpoints may need
// again is then in the link's DurableLog. Each call takes constant time. Not thread-safe.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <variant>
#include <vector>

#include "executor/protocol/events.h"
#include "framework/runtime/clock.h"

namespace penstock::client {

// The fields by which an answer identifies its event.
struct SentKey {
  std::size_t kind = 0;  // the event's position in protocol::Event
  std::uint64_t step = 0;
  std::uint32_t variable = 0, chunk = 0, part = 0;

  friend bool operator==(const SentKey&, const SentKey&) = default;
};
// The keys of the events that are kept; Ask and Failure are not.
SentKey KeyOf(const protocol::Hello&);  // at most one is kept
SentKey KeyOf(const protocol::Push& push);
SentKey KeyOf(const protocol::EndStep& end);
SentKey KeyOf(const protocol::CountStep& count);
SentKey KeyOf(const protocol::Pull& pull);
SentKey KeyOf(const protocol::PullRows& pull);
SentKey KeyOf(const protocol::PullChanged& pull);
SentKey KeyOf(const protocol::Save& save);
SentKey KeyOf(const protocol::Complete&);
SentKey KeyOf(const protocol::DeclareKey& declare);
SentKey KeyOf(const protocol::SetOptimizer& set);
SentKey KeyOf(const protocol::Barrier& barrier);
SentKey KeyOf(const protocol::CutKeys& cut);
SentKey KeyOf(const protocol::CountGone& count);

class RetentionLog {
 public:
  struct Sent {
    SentKey key;
    protocol::Event event;
    std::uint64_t contract = 0;  // the hash of the contract under which it was sent
    Nanoseconds at{0};           // when it was last sent

   private:
    friend class RetentionLog;
    Sent* next = nullptr;  // in its bucket
    std::list<Sent>::iterator self;
  };

  struct Kept {
    const Sent& sent;
    bool replaced = false;  // there was an entry with the same key
  };
  template <typename E>
  Kept Keep(E event, std::uint64_t contract, Nanoseconds now) {
    const std::size_t before = size_;
    Sent& sent = Place(KeyOf(event));
    if (size_ == before) push_bytes_ -= BytesOfPush(sent.event);
    sent.at = now;
    sent.contract = contract;
    sent.event = std::move(event);
    push_bytes_ += BytesOfPush(sent.event);
    return {sent, size_ == before};
  }
  // Returns whether the event was kept.
  bool Release(const SentKey& key) { return Take(key).has_value(); }
  // Releases the event and returns it; nullopt: it was not kept.
  std::optional<protocol::Event> Take(const SentKey& key);
  // Calls `visit` with the key and the event of each entry, the earliest first.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (const Sent& sent : kept_) visit(sent.key, sent.event);
  }
  // Calls `send` for all entries last sent at `due` or before, the earliest first.
  template <typename Send>
  void SendAgain(Nanoseconds due, Nanoseconds now, const Send& send) {
    for (std::size_t left = size_; left > 0 && kept_.front().at <= due; --left) {
      kept_.splice(kept_.end(), kept_, kept_.begin());
      kept_.back().at = now;
      send(kept_.back());
    }
  }
  bool empty() const { return size_ == 0; }
  const Sent& oldest() const { return kept_.front(); }  // by time of sending; the log must not be empty
  std::size_t size() const { return size_; }
  std::size_t push_bytes() const { return push_bytes_; }  // of all pushes that are kept
  std::uint64_t compared() const { return compared_; }    // keys compared so far, for tests of the cost

 private:
  static std::size_t BytesOfPush(const protocol::Event& event) {
    const auto* push = std::get_if<protocol::Push>(&event);
    return push == nullptr ? 0 : push->bytes.size();
  }
  Sent& Place(const SentKey& key);  // at the end of kept_
  Sent** Find(const SentKey& key);  // the pointer to it, or the null that ends its bucket
  void Grow();

  std::list<Sent> kept_;                                 // in the order of `at`
  std::list<Sent> spare_;                                // nodes for reuse
  std::vector<Sent*> buckets_ = std::vector<Sent*>(64);  // a power of two
  std::size_t size_ = 0, push_bytes_ = 0;
  std::uint64_t compared_ = 0;
};

}  // namespace penstock::client
