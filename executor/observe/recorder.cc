#include "executor/observe/recorder.h"

#include <algorithm>
#include <cstring>

#include "framework/base/strings.h"

namespace penstock::observe {
namespace {

constexpr std::size_t kNameMax = 1000;  // bytes of one name

std::uint32_t OffsetIn(const FlightBlock& block, const void* part) {
  return static_cast<std::uint32_t>(static_cast<const char*>(part) - reinterpret_cast<const char*>(&block));
}

}  // namespace

const char* NameOf(EventKind kind) {
  switch (kind) {
    case EventKind::kNone:
      return "none";
    case EventKind::kStepEnded:
      return "step ended";
    case EventKind::kPushSent:
      return "push sent";
    case EventKind::kPushTaken:
      return "push taken";
    case EventKind::kPullAnswered:
      return "pull answered";
    case EventKind::kGradientTaken:
      return "gradient taken";
    case EventKind::kBlockRun:
      return "block run";
    case EventKind::kPublished:
      return "published";
    case EventKind::kPeerCame:
      return "peer came";
    case EventKind::kPullAsked:
      return "pull asked";
    case EventKind::kPeerLeft:
      return "peer left";
    case EventKind::kWaitBegun:
      return "wait begun";
    case EventKind::kWaitEnded:
      return "wait ended";
    case EventKind::kWaitsFor:
      return "waits for";
  }
  return "";
}

Recorder::Recorder(FlightMemory memory, const Clock& clock)
    : memory_(std::move(memory)), block_(memory_.block()), clock_(clock) {
  if (block_ == nullptr) return;
  block_->events = FlightBlock::kEvents;
  block_->event_bytes = sizeof(FlightEvent);
  block_->events_at = OffsetIn(*block_, &block_->ring);
  block_->names_at = OffsetIn(*block_, &block_->names);
  block_->names_bytes = FlightBlock::kNamesBytes;
  std::string kinds;
  for (int kind = 0; kind <= static_cast<int>(EventKind::kWaitsFor); ++kind)
    kinds += StrCat(NameOf(static_cast<EventKind>(kind)), "\n");
  std::memcpy(block_->kinds.data(), kinds.data(), std::min(kinds.size(), block_->kinds.size()));
  block_->progress_ns.store(static_cast<std::uint64_t>(clock_.Now().count()), std::memory_order_relaxed);
  block_->magic.store(FlightBlock::kMagic, std::memory_order_release);
}

NameId Recorder::Intern(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto known = names_.find(name);
  if (known != names_.end()) return known->second;
  const std::string_view kept = name.substr(0, kNameMax);
  if (block_ == nullptr || names_end_ + 2 + kept.size() > FlightBlock::kNamesBytes) return 0;
  char* at = block_->names.data() + names_end_;
  at[0] = static_cast<char>(kept.size() & 0xff);
  at[1] = static_cast<char>(kept.size() >> 8);
  std::memcpy(at + 2, kept.data(), kept.size());
  const auto id = static_cast<NameId>(names_end_);
  names_.emplace(name, id);
  names_end_ += 2 + kept.size();
  return id;
}

std::string Recorder::NameAt(NameId id) const {
  if (id == 0) return "";
  const auto* at = reinterpret_cast<const unsigned char*>(block_->names.data()) + id;
  return {reinterpret_cast<const char*>(at) + 2, static_cast<std::size_t>(at[0]) + (std::size_t{at[1]} << 8)};
}

std::vector<RecordedEvent> Recorder::Events() const {
  std::vector<RecordedEvent> events;
  if (block_ == nullptr) return events;
  const std::uint64_t end = block_->next.load(std::memory_order_acquire);
  for (std::uint64_t n = end < FlightBlock::kEvents ? 0 : end - FlightBlock::kEvents; n < end; ++n) {
    const FlightEvent& event = block_->ring[n % FlightBlock::kEvents];
    if (event.stamp.load(std::memory_order_acquire) != n + 1) continue;
    const std::uint64_t names = event.names.load(std::memory_order_acquire);
    RecordedEvent read{
        .kind = static_cast<EventKind>(event.kind.load(std::memory_order_acquire)),
        .time = Nanoseconds(static_cast<std::int64_t>(event.time_ns.load(std::memory_order_acquire))),
        .step = event.step.load(std::memory_order_acquire),
        .bytes = event.bytes.load(std::memory_order_acquire),
        .peer = {},
        .variable = {}};
    if (event.stamp.load(std::memory_order_acquire) != n + 1) continue;
    read.peer = NameAt(static_cast<NameId>(names >> 32));
    read.variable = NameAt(static_cast<NameId>(names & 0xffffffff));
    events.push_back(std::move(read));
  }
  return events;
}

}  // namespace penstock::observe
