#include "executor/client/durable_log.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace penstock::client {
namespace {

// Four sizes between a power of two and the next, so gradients of rows, whose sizes differ, use memory again.
std::size_t CapacityFor(std::size_t size) {
  const std::size_t grain = std::max<std::size_t>(std::bit_floor(size) / 4, 64);
  return (size + grain - 1) / grain * grain;
}

}  // namespace

DurableLog::Line& DurableLog::At(ChunkAt at) {
  if (lines_.size() <= at.slot) lines_.resize(at.slot + std::size_t{1});
  std::vector<Line>& chunks = lines_[at.slot];
  if (chunks.size() <= at.chunk) chunks.resize(at.chunk + std::size_t{1});
  return chunks[at.chunk];
}

std::deque<DurableLog::Part>::iterator DurableLog::PlaceOf(Line& line, std::uint64_t step,
                                                           std::uint32_t part) {
  auto at = line.parts.end();
  while (at != line.parts.begin()) {  // from the end: most are new
    const Part& before = *std::prev(at);
    if (std::pair(before.step, before.part) < std::pair(step, part)) break;
    --at;
  }
  return at;
}

// A part that is not sent again stays before `next`.
void DurableLog::Insert(Line& line, std::deque<Part>::iterator at, Part part) {
  if (static_cast<std::size_t>(at - line.parts.begin()) <= line.next) ++line.next;
  line.parts.insert(at, std::move(part));
}

void DurableLog::Copy(const Payload& bytes, Part& to) {
  const std::size_t size = bytes.size(), capacity = CapacityFor(size);
  std::vector<std::shared_ptr<std::byte[]>>& unused = unused_[capacity];
  if (!unused.empty()) {
    to.copy = std::move(unused.back());
    unused.pop_back();
    unused_bytes_ -= capacity;
  } else {
    to.copy = std::make_shared_for_overwrite<std::byte[]>(std::max<std::size_t>(capacity, 1));
  }
  bytes.CopyTo(to.copy.get());
  Payload own(Bytes{to.copy, to.copy.get(), size});
  if (bytes.crc32c()) own.set_crc32c(*bytes.crc32c());
  to.bytes = std::move(own);
  bytes_ += size;
  used_ += capacity;
  most_ = std::max(most_, used_);
  if (used_ + unused_bytes_ <= most_) return;
  unused_.clear();
  unused_bytes_ = 0;
}

void DurableLog::Free(Part& part) {
  if (part.copy == nullptr) return;
  const std::size_t size = part.bytes.size(), capacity = CapacityFor(size);
  bytes_ -= size;
  used_ -= capacity;
  part.bytes = {};
  // Otherwise a message that is being sent has it.
  if (part.copy.use_count() > 1 || used_ + unused_bytes_ + capacity > most_) return;
  unused_[capacity].push_back(std::move(part.copy));
  unused_bytes_ += capacity;
}

bool DurableLog::Acknowledged(ChunkAt at, const protocol::Push& push) {
  Line& line = At(at);
  const auto place = PlaceOf(line, push.step, push.part);
  if (place == line.parts.end() || place->step != push.step || place->part != push.part) {
    Part part;
    part.step = push.step;
    part.part = push.part;
    part.rows = push.rows;
    Copy(push.bytes, part);
    Insert(line, place, std::move(part));
    return true;
  }
  if (place->copy == nullptr) Copy(push.bytes, *place);
  return std::exchange(place->awaited, false);
}

bool DurableLog::AcknowledgedInitial(ChunkAt at, const protocol::Push& push, std::uint64_t until) {
  const InitialAt key{.slot = at.slot, .chunk = at.chunk, .part = push.part};
  const bool awaited = acknowledged_.insert(key).second;
  if (awaited) initial_.emplace(key, Initial{.bytes = push.bytes, .until = until});
  return awaited;
}

void DurableLog::Ended(std::uint64_t step, std::vector<std::uint32_t> slots) {
  auto at = ends_.end();
  while (at != ends_.begin() && std::prev(at)->step >= step) --at;
  if (at != ends_.end() && at->step == step) return;
  ends_.insert(at, End{.step = step, .slots = std::move(slots)});
}

void DurableLog::InFlight(ChunkAt at, const protocol::Push& push) {
  Line& line = At(at);
  const auto place = PlaceOf(line, push.step, push.part);
  if (place != line.parts.end() && place->step == push.step && place->part == push.part) return;
  Part part;
  part.step = push.step;
  part.part = push.part;
  part.rows = push.rows;
  part.bytes = push.bytes;
  part.awaited = true;
  Insert(line, place, std::move(part));
}

void DurableLog::Release(std::uint64_t version) {
  for (std::vector<Line>& chunks : lines_) {
    for (Line& line : chunks) {
      while (!line.parts.empty() && line.parts.front().step < version) {
        Free(line.parts.front());
        line.parts.pop_front();
        line.next > 0 ? --line.next : --left_;
      }
    }
  }
  while (!ends_.empty() && ends_.front().step < version) ends_.pop_front();
  counts_.erase(counts_.begin(), counts_.lower_bound(version));
  std::erase_if(initial_, [&](const auto& entry) { return entry.second.until <= version; });
}

void DurableLog::Rewind() {
  left_ = 0;
  for (std::vector<Line>& chunks : lines_) {
    for (Line& line : chunks) {
      line.next = 0;
      left_ += line.parts.size();
    }
  }
}

const DurableLog::Part* DurableLog::Next(ChunkAt at) const {
  if (left_ == 0 || at.slot >= lines_.size() || at.chunk >= lines_[at.slot].size()) return nullptr;
  const Line& line = lines_[at.slot][at.chunk];
  return line.next < line.parts.size() ? &line.parts[line.next] : nullptr;
}

void DurableLog::Sent(ChunkAt at) {
  ++At(at).next;
  --left_;
}

}  // namespace penstock::client
