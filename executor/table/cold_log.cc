#include "executor/table/cold_log.h"

#include <unistd.h>

#include <algorithm>

namespace penstock::table {
namespace {

constexpr Slot kBatches = 16;      // of a segment
constexpr Slot kPlacesLeast = 64;  // a word of bits

}  // namespace

ColdLog::ColdLog(Disk& disk, std::string path, std::size_t record_bytes, Slot batch_records)
    : disk_(disk), path_(std::move(path)), record_bytes_(record_bytes), batch_records_(batch_records) {
  while (segment_records() < std::max(kPlacesLeast, batch_records_ * kBatches)) ++shift_;
}

std::uint64_t ColdLog::file_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& segment : segments_) {
    if (segment != nullptr) bytes += std::uint64_t{segment->used} * record_bytes_;
  }
  return bytes;
}

Result<ColdLog::Room> ColdLog::MakeRoom(bool reuse) {
  if (!last_) {
    std::size_t at = segments_.size();
    if (reuse && !free_.empty()) {
      at = free_.back();
      free_.pop_back();
    } else {
      if (at >= (std::size_t{kNoSlot} >> shift_)) {
        return FailedPrecondition("E-table-cold-full", path_, " has ", live_,
                                  " rows on disk, and there are no numbers for more");
      }
      segments_.emplace_back();
    }
    auto segment = std::make_unique<Segment>();
    const std::string path = StrCat(path_, ".", ::getpid(), ".", files_++);
    segment->file = std::make_shared<ColdFile>(disk_, path, record_bytes_);
    segment->part.file = segment->file;
    segment->part.live.resize(segment_records() / 64);
    segments_[at] = std::move(segment);
    last_ = at;
  }
  const Segment& segment = *segments_[*last_];
  return Room{.first = (static_cast<Slot>(*last_) << shift_) + segment.used, .file = segment.file};
}

void ColdLog::Use(const Room& room, Slot used) {
  const std::size_t at = room.first >> shift_;
  segments_[at]->used += used;
  if (segments_[at]->used + batch_records_ <= segment_records()) return;
  last_.reset();
  FreeIfEmpty(at);
}

void ColdLog::Add(Slot number, const Mark& mark) {
  Segment& segment = *segments_[number >> shift_];
  const Slot place = PlaceOf(number);
  segment.part.live[place / 64] |= std::uint64_t{1} << (place % 64);
  segment.part.newest = std::max(segment.part.newest, mark.version);
  segment.part.first_gone = std::min(segment.part.first_gone, mark.gone_from);
  segment.part.last_gone = std::max(segment.part.last_gone, mark.gone_from);
  ++segment.live;
  ++live_;
}

void ColdLog::Remove(Slot number) {
  const std::size_t at = number >> shift_;
  Segment& segment = *segments_[at];
  const Slot place = PlaceOf(number);
  segment.part.live[place / 64] &= ~(std::uint64_t{1} << (place % 64));
  --segment.live;
  --live_;
  FreeIfEmpty(at);
}

// The last segment stays: it gets more records.
void ColdLog::FreeIfEmpty(std::size_t at) {
  if (segments_[at]->live > 0 || last_ == at) return;
  segments_[at].reset();
  free_.push_back(at);
}

std::optional<Slot> ColdLog::FindToCompact(std::uint64_t version) const {
  std::optional<Slot> found;
  Slot fewest = 0;
  for (std::size_t at = 0; at < segments_.size(); ++at) {
    const Segment* const segment = segments_[at].get();
    if (segment == nullptr || segment->live == 0) continue;
    const bool is_due =
        segment->part.last_gone <= version || (last_ != at && segment->live <= segment->used / 2);
    if (!is_due || (found && segment->live >= fewest)) continue;
    found = static_cast<Slot>(at) << shift_;
    fewest = segment->live;
  }
  return found;
}

std::vector<ColdPart> ColdLog::Parts() const {
  std::vector<ColdPart> parts;
  for (const auto& segment : segments_) {
    if (segment != nullptr && segment->live > 0) parts.push_back(segment->part);
  }
  return parts;
}

}  // namespace penstock::table
