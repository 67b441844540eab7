// Moves rows to the log, and compacts it.
#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <new>

#include "executor/table/cold_tier.h"

namespace penstock::table {
namespace {

// A slice of a sweep, in units of one header that is looked at, as RowLife's.
constexpr std::size_t kLooks = 40960;
constexpr std::size_t kCopyLooks = 16;  // the copy of a row to a batch
constexpr std::size_t kRetiredInSlice = 1024;
constexpr std::size_t kRetiredAtATime = 64;
constexpr Slot kHeadersAhead = 24;
constexpr std::size_t kLinesAtATime = 4096;

}  // namespace

bool ColdTier::Sweep(Shard& rows, std::uint64_t version, RowLife* life) {
  if (!sweeping(rows, version)) return false;
  try {
    SweepSome(rows, version, life);
  } catch (const std::bad_alloc&) {
    failed_ = FailedPrecondition("E-run-memory", "not enough memory to move rows of a table to disk");
  }
  return sweeping(rows, version);
}

void ColdTier::SweepSome(Shard& rows, std::uint64_t version, RowLife* life) {
  if (background_.started()) {
    if (!background_.finished()) ++counts_.waits;
    failed_ = background_.Take();
    if (!failed_.ok()) return;  // the rows of the batch are where they were
    state_ = state_ == State::kWrite ? State::kRetire : State::kFilter;
  }
  Tidy();
  switch (state_) {
    case State::kIdle:
      if (IsOver(rows, version)) {
        BeginChoosing(rows, version);
      } else if ((compacted_ = log_.FindToCompact(version))) {
        read_ = 0;
        Read();
      }
      break;
    case State::kChoose:
      Choose(rows, version, life);
      break;
    case State::kRetire:
      if (rows.Settle(kLinesAtATime) && Retire(rows)) EndBatch(rows);
      break;
    case State::kRelease:  // the index of cold rows has grown, so fewer rows are hot than before
      if (!rows.ReleaseSpare()) state_ = State::kIdle;
      break;
    case State::kFilter:
      Filter(version, life);
      break;
    case State::kWrite:
    case State::kRead:
      break;
  }
}

bool ColdTier::BeginBatch() {
  items_.clear();
  retired_ = 0;
  batch_.resize(std::size_t{batch_rows_} * row_bytes_);
  Result<ColdLog::Room> room = log_.MakeRoom(stale_.empty());
  failed_ = room.status();
  if (room.ok()) room_ = *std::move(room);
  return failed_.ok();
}

void ColdTier::Add(const RowHeader& row, Slot from, const RowLife* life) {
  const auto at = static_cast<Slot>(items_.size());
  items_.push_back({.id = row.id,
                    .version = row.version,
                    .to = room_->first + at,
                    .from = from,
                    .gone_from = life == nullptr ? kNeverGone : life->GoneFrom(row)});
}

void ColdTier::Choose(Shard& rows, std::uint64_t version, const RowLife* life) {
  if (!room_ && !BeginBatch()) return;
  left_ = std::min(left_, rows.size());
  const bool enough = to_move_ == 0;
  for (std::size_t work = 0; left_ > 0 && !enough && !IsBatchFull() && work < kLooks; ++work) {
    --left_;
    if (left_ >= kHeadersAhead) __builtin_prefetch(rows.At(left_ - kHeadersAhead).header);
    const RowHeader& row = *rows.At(left_).header;
    if (row.version >= below_ || (life != nullptr && life->IsGone(row, version))) continue;
    std::memcpy(BatchRow(items_.size()).data(), &row, row_bytes_);
    ColdFile::Pack(BatchRow(items_.size()));
    Add(row, kNoSlot, life);
    work += kCopyLooks;
  }
  const bool is_over = enough || left_ == 0;
  if (IsBatchFull() || (is_over && !items_.empty())) return Write();
  if (!is_over) return;
  room_.reset();
  rests_with_ = rows.size();
  state_ = State::kIdle;
}

void ColdTier::Write() {
  state_ = State::kWrite;
  counts_.written += items_.size();
  background_.Start([file = room_->file, records = std::span(batch_).first(items_.size() * row_bytes_)] {
    return file->Append(records);
  });
}

// Some of the batch; true when all of it is done.
bool ColdTier::Retire(Shard& rows) {
  const std::size_t end = std::min(items_.size(), retired_ + kRetiredInSlice);
  while (retired_ < end) {
    const auto some =
        std::span<const Item>(items_).subspan(retired_, std::min(kRetiredAtATime, end - retired_));
    some.front().from == kNoSlot ? RetireHot(rows, some) : RetireCompacted(some);
    retired_ += some.size();
  }
  return retired_ == items_.size();
}

// Rows that have not changed since they were copied leave the shard.
void ColdTier::RetireHot(Shard& rows, std::span<const Item> items) {
  std::array<std::int64_t, kRetiredAtATime> ids;
  std::array<Slot, kRetiredAtATime> slots;
  std::transform(items.begin(), items.end(), ids.begin(), [](const Item& item) { return item.id; });
  for (const Item& item : items) index_.Prefetch(HashOf(item.id));
  std::size_t count = 0;
  rows.Visit(std::span(ids).first(items.size()), [&](std::size_t i, Row row) {
    const Item& item = items[i];
    if (!row || row.header->version != item.version) return;
    log_.Add(item.to, {.version = item.version, .gone_from = item.gone_from});
    index_.Add(HashOf(item.id), item.to);
    slots[count++] = row.slot;
  });
  std::sort(slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(count), std::greater<>());
  rows.Erase(std::span(slots).first(count), {});
  to_move_ -= std::min(to_move_, static_cast<Slot>(count));
}

// Records of which the row was not fetched meanwhile are replaced.
void ColdTier::RetireCompacted(std::span<const Item> items) {
  for (const Item& item : items) index_.Prefetch(HashOf(item.id));
  for (const Item& item : items) {
    if (!log_.IsLive(item.from)) continue;
    log_.Add(item.to, {.version = item.version, .gone_from = item.gone_from});
    index_.Add(HashOf(item.id), item.to);
    ForgetRecord(item.from, HashOf(item.id));
  }
}

void ColdTier::EndBatch(Shard& rows) {
  log_.Use(*room_, static_cast<Slot>(items_.size()));
  room_.reset();
  if (compacted_) {
    Read();
  } else {
    state_ = State::kChoose;
    if (left_ > 0 && to_move_ > 0) return;
    rests_with_ = rows.size();
    state_ = State::kRelease;
  }
}

// The next records of the segment that is compacted, as many as there is room for those that are live.
void ColdTier::Read() {
  const Slot used = log_.UsedWith(*compacted_);
  if (read_ >= used) {
    compacted_.reset();
    state_ = State::kIdle;
    return;
  }
  if (!BeginBatch()) return;
  read_count_ = std::min(batch_rows_, used - read_);
  state_ = State::kRead;
  background_.Start([file = log_.ShareFileOf(*compacted_), place = log_.PlaceOf(*compacted_) + read_,
                     records = std::span(batch_).first(std::size_t{read_count_} * row_bytes_)] {
    return file->Read(place, records);
  });
}

// Of the records that were read, moves those that are live to the front of the batch.
void ColdTier::Filter(std::uint64_t version, RowLife* life) {
  for (Slot i = 0; i < read_count_; ++i) {
    const Slot record = *compacted_ + read_ + i;
    if (!log_.IsLive(record)) continue;
    const std::span<std::byte> row = BatchRow(i);
    if (!ColdFile::Unpack(row)) {
      failed_ = log_.FileOf(record).Damaged(log_.PlaceOf(record), {});
      return;
    }
    const RowHeader header = *reinterpret_cast<const RowHeader*>(row.data());
    if (life != nullptr && life->IsGone(header, version)) {
      life->TookBack(header);
      ForgetRecord(record, HashOf(header.id));
      continue;
    }
    const std::span<std::byte> to = BatchRow(items_.size());
    if (to.data() != row.data()) std::memcpy(to.data(), row.data(), row_bytes_);
    ColdFile::Pack(to);
    Add(header, record, life);
  }
  read_ += read_count_;
  if (!items_.empty()) return Write();
  room_.reset();
  Read();
}

}  // namespace penstock::table
