#include "executor/client/retention_log.h"

#include <type_traits>
#include <utility>
#include <variant>

namespace penstock::client {
namespace {

// The position of E among the alternatives of a variant.
template <typename E, typename... Es>
constexpr std::size_t PositionOf(const std::variant<Es...>*) {
  std::size_t at = 0;
  (void)((std::is_same_v<E, Es> || (++at, false)) || ...);
  return at;
}

template <typename E>
constexpr std::size_t KindOf() {
  return PositionOf<E>(static_cast<const protocol::Event*>(nullptr));
}

// Keys differ only in low bits of a few fields; the multiplications spread these over the high bits.
std::size_t HashOf(const SentKey& key) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
  std::uint64_t hash = (key.step * kOdd) ^ key.kind;
  hash = (hash ^ key.variable) * kOdd;
  hash = ((hash >> 32) ^ hash ^ key.chunk) * kOdd;
  hash = ((hash >> 32) ^ hash ^ key.part) * kOdd;
  return static_cast<std::size_t>(hash >> 32);
}

}  // namespace

SentKey KeyOf(const protocol::Hello&) { return {.kind = KindOf<protocol::Hello>()}; }
SentKey KeyOf(const protocol::Push& push) {
  return {.kind = KindOf<protocol::Push>(),
          .step = push.step,
          .variable = push.at.variable,
          .chunk = push.at.chunk,
          .part = push.part};
}
SentKey KeyOf(const protocol::EndStep& end) {
  return {.kind = KindOf<protocol::EndStep>(), .step = end.step};
}
SentKey KeyOf(const protocol::CountStep& count) {
  return {.kind = KindOf<protocol::CountStep>(), .step = count.step};
}
SentKey KeyOf(const protocol::Pull& pull) {
  return {.kind = KindOf<protocol::Pull>(),
          .step = pull.version,
          .variable = pull.at.variable,
          .chunk = pull.at.chunk};
}
SentKey KeyOf(const protocol::PullRows& pull) {
  return {.kind = KindOf<protocol::PullRows>(), .part = pull.request};
}
SentKey KeyOf(const protocol::PullChanged& pull) {
  return {.kind = KindOf<protocol::PullChanged>(), .step = pull.version, .variable = pull.variable};
}
SentKey KeyOf(const protocol::Save& save) { return {.kind = KindOf<protocol::Save>(), .part = save.request}; }
SentKey KeyOf(const protocol::Complete&) { return {.kind = KindOf<protocol::Complete>()}; }

SentKey KeyOf(const protocol::DeclareKey& declare) {
  return {.kind = KindOf<protocol::DeclareKey>(), .part = declare.request};
}
SentKey KeyOf(const protocol::SetOptimizer& set) {
  return {.kind = KindOf<protocol::SetOptimizer>(), .step = set.number};
}
SentKey KeyOf(const protocol::Barrier& barrier) {
  return {.kind = KindOf<protocol::Barrier>(), .step = barrier.number};
}
SentKey KeyOf(const protocol::CutKeys& cut) {
  return {.kind = KindOf<protocol::CutKeys>(), .step = cut.step};
}
SentKey KeyOf(const protocol::CountGone& count) {
  return {.kind = KindOf<protocol::CountGone>(), .part = count.request};
}

RetentionLog::Sent** RetentionLog::Find(const SentKey& key) {
  Sent** at = &buckets_[HashOf(key) & (buckets_.size() - 1)];
  for (; *at != nullptr; at = &(*at)->next) {
    ++compared_;
    if ((*at)->key == key) return at;
  }
  return at;
}

RetentionLog::Sent& RetentionLog::Place(const SentKey& key) {
  Sent** at = Find(key);
  if (*at != nullptr) {
    kept_.splice(kept_.end(), kept_, (*at)->self);
    return **at;
  }
  if (size_ == buckets_.size()) {
    Grow();
    at = Find(key);
  }
  if (spare_.empty()) spare_.emplace_back();
  kept_.splice(kept_.end(), spare_, spare_.begin());
  Sent& sent = kept_.back();
  sent.key = key;
  sent.next = nullptr;
  sent.self = std::prev(kept_.end());
  *at = &sent;
  ++size_;
  return sent;
}

std::optional<protocol::Event> RetentionLog::Take(const SentKey& key) {
  Sent** at = Find(key);
  if (*at == nullptr) return std::nullopt;
  Sent& sent = **at;
  *at = sent.next;
  push_bytes_ -= BytesOfPush(sent.event);
  std::optional<protocol::Event> event(std::exchange(sent.event, protocol::Complete{}));
  spare_.splice(spare_.end(), kept_, sent.self);
  --size_;
  return event;
}

void RetentionLog::Grow() {
  buckets_.assign(buckets_.size() * 2, nullptr);
  for (Sent& sent : kept_) {
    sent.next = nullptr;
    *Find(sent.key) = &sent;
  }
}

}  // namespace penstock::client
