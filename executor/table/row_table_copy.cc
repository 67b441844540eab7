// Copies of a table: for saves, for checkpoints, and into the server's scope at the end.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "executor/table/row_table.h"

namespace penstock::table {
namespace {

// Different rows have the same hash with a probability of 2^-64.
std::uint64_t Mixed(std::uint64_t hash, const std::byte* bytes, std::size_t size) {
  while (size > 0) {
    std::uint64_t word = 0;
    const std::size_t some = std::min(size, sizeof(word));
    std::memcpy(&word, bytes, some);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
    hash *= 0xd6e8feb86659fd93u;
    hash ^= hash >> 29;
    bytes += some;
    size -= some;
  }
  return hash;
}

}  // namespace

RowCopy RowTable::MakeCopy(CopiedRows kind, std::optional<std::uint64_t> since, Dim portion) const {
  RowCopy copy{.kind = kind, .since = since, .end = shard_->size(), .portion = portion, .rows = {}};
  if (cold_ != nullptr) {
    copy.cold = cold_->Parts();
    copy.cold_left = cold_->size();
  }
  const auto none = [](const Column& column) {
    return Tensor(column.values.dtype(), column.values.shape().WithRows(0));
  };
  copy.rows.height = height_;
  copy.rows.value = none(columns_.front());
  copy.rows.start = columns_.front().start;
  std::transform(columns_.begin() + 1, columns_.end(), std::back_inserter(copy.states), none);
  if (life_ != nullptr) copy.clock = life_->clock(version_);
  if (kind == CopiedRows::kStored && life_ != nullptr)
    copy.life = Tensor(DType::kInt64, {0, LifeCopy::kFields});
  if (kind == CopiedRows::kStored && KeepsHistory()) {
    copy.versions = Tensor(DType::kInt64, {0, 1});
    const std::vector<double> numbers = history_->numbers();
    copy.history = Tensor(DType::kFp64, {static_cast<Dim>(numbers.size())});
    std::copy(numbers.begin(), numbers.end(), copy.history.Data<double>());
  }
  if (CopiesAhead(copy)) copy.ahead.resize(shard_->size());
  return copy;
}

RowCopy RowTable::BeginCopy(CopiedRows kind, std::optional<std::uint64_t> since) const {
  PENSTOCK_CHECK(!since || NotesChanges(), "the table knows which rows have changed");
  RowCopy copy = MakeCopy(kind, since, std::max<Dim>(row_count(), 1));
  if (kind == CopiedRows::kStored && life_ != nullptr)
    copy.candidates = life_->CopyCandidates(version_, since, copy.candidates_all);
  return copy;
}

RowCopy RowTable::BeginCut(bool changes, Dim portion) {
  const bool continues = changes && cut_notes_ != nullptr;
  if (cut_notes_ == nullptr) cut_notes_ = std::make_shared<CutNotes>();
  const auto since = continues ? std::optional(cut_notes_->version) : std::nullopt;
  RowCopy copy = MakeCopy(CopiedRows::kStored, since, portion);
  copy.notes = cut_notes_.get();
  cut_notes_->version = version_;
  if (layout_ == Layout::kColumns) cut_notes_->hashes.resize(shard_->size());
  if (life_ == nullptr) return copy;
  copy.candidates = life_->CutCandidates(version_, since, copy.candidates_all, copy.gone);
  if (!continues) copy.gone.clear();
  return copy;
}

// Columns: the block may change any row. With a budget and a rule, an update may move rows. Rows that get
// what they missed need the history of the time of the copy.
bool RowTable::CopiesAhead(const RowCopy& copy) const {
  const bool as_they_lie = copy.kind == CopiedRows::kStored || !KeepsHistory();
  const bool rows_stay = life_ == nullptr || !life_->SweepsInUpdates();
  return layout_ == Layout::kRows && rows_stay && as_they_lie;
}

std::uint64_t RowTable::HashOfColumns(Row row) const {
  auto hash = static_cast<std::uint64_t>(row.header->id);
  for (std::size_t column = 0; column < columns_.size(); ++column)
    hash = Mixed(hash, At(column, row), columns_[column].row_bytes());
  return hash | 1;  // 0: not known
}

bool RowTable::HasChanged(const RowCopy& copy, Row row) const {
  bool changed = !copy.since || row.header->version > *copy.since;
  if (copy.notes == nullptr || layout_ == Layout::kRows) return changed;
  std::uint64_t& noted = copy.notes->hashes[row.slot];
  const std::uint64_t hash = HashOfColumns(row);
  return std::exchange(noted, hash) != hash || changed;
}

// Whether the row was not gone at the time of the last checkpoint.
bool RowTable::NoteGone(const RowCopy& copy, Row row) const {
  if (row.slot != kNoSlot) return RowLife::NoteGone(*row.header);
  return copy.since && !life_->IsGone(*row.header, LifeClock{.version = *copy.since});
}

void RowTable::AddTo(RowCopy& copy, Row row, std::vector<std::byte>& current) const {
  if (life_ != nullptr && life_->IsGone(*row.header, copy.clock)) {
    if (copy.notes != nullptr && NoteGone(copy, row) && copy.since) copy.gone.push_back(row.header->id);
    return;
  }
  ++copy.stored;
  if (!HasChanged(copy, row)) return;
  if (copy.leaving && !life_->IsGone(*row.header, *copy.leaving)) return;
  const std::size_t at = copy.rows.rows.size();
  if (static_cast<Dim>(at) == copy.rows.value.shape()[0]) copy.MakeRoom();
  copy.rows.rows.push_back(row.header->id);
  const Row from = copy.kind == CopiedRows::kStored ? row : Current(row, current);
  for (std::size_t column = 0; column < columns_.size(); ++column) {
    Tensor& to = column == 0 ? copy.rows.value : copy.states[column - 1];
    const std::size_t bytes = columns_[column].row_bytes();
    std::memcpy(to.raw() + at * bytes, At(column, from), bytes);
  }
  if (copy.versions.initialized())
    copy.versions.Data<std::int64_t>()[at] = static_cast<std::int64_t>(row.header->version);
  if (copy.life.initialized())
    RowLife::WriteFields(*row.header, false,
                         copy.life.Data<std::int64_t>() + at * static_cast<std::size_t>(LifeCopy::kFields));
}

LifeCopy RowTable::CopyLife() const {
  RowCopy copy = BeginCopy(CopiedRows::kStored);
  CopyRows(copy, row_count());
  LifeCopy life = copy.TakeLife();
  SortRows(life.headers, {});
  return life;
}

RowCopy RowTable::CopyLeaving() const {
  RowCopy copy = BeginCopy();
  copy.leaving = version_ + 1;
  CopyRows(copy, row_count());
  return copy;
}

bool RowTable::CopyRows(RowCopy& copy, Dim rows_max) const {
  const auto count = std::min(copy.end - copy.next, static_cast<Slot>(std::min<Dim>(rows_max, copy.end)));
  const Slot end = copy.next + count;
  std::vector<std::byte> current;
  for (; copy.next < end; ++copy.next) {
    if (copy.ahead.empty() || !copy.ahead[copy.next]) AddTo(copy, shard_->At(copy.next), current);
  }
  if (copy.next == copy.end) CopyColdRows(copy, rows_max - static_cast<Dim>(count));
  return copy.complete();
}

// Reads a segment's records in the order in which they lie, with those between them that are not live.
void RowTable::CopyColdRows(RowCopy& copy, Dim rows_max) const {
  constexpr std::size_t kReadBytes = std::size_t{1} << 20;
  const std::size_t bytes = shard_->row_bytes();
  const auto most = static_cast<Slot>(std::max<std::size_t>(1, kReadBytes / bytes));
  std::vector<std::byte> records(most * bytes), current;
  for (Dim copied = 0; copied < rows_max && copy.cold_left > 0 && copy.status.ok();) {
    const ColdPart& part = copy.cold.back();
    const auto places = static_cast<Slot>(part.live.size() * 64);
    while (copy.cold_place < places && !part.IsLive(copy.cold_place)) ++copy.cold_place;
    if (copy.cold_place == places) {
      copy.cold.pop_back();
      copy.cold_place = 0;
      continue;
    }
    Slot end = copy.cold_place, last = end;  // of a run of records; behind its last live one
    Dim live = 0;
    for (; end < places && end - copy.cold_place < most && copied + live < rows_max; ++end) {
      if (!part.IsLive(end)) continue;
      ++live;
      last = end + 1;
    }
    copied += live;
    copy.cold_left -= static_cast<Slot>(live);
    const bool unchanged = copy.since && part.newest <= *copy.since &&
                           (life_ == nullptr || part.first_gone > copy.clock.version);
    const bool stays = copy.leaving && (part.first_gone > *copy.leaving || part.last_gone < *copy.leaving);
    if (unchanged || stays) {
      copy.stored += live;
    } else {
      CopyRecords(copy, last, records, current);
    }
    copy.cold_place = end;
  }
}

void RowTable::CopyRecords(RowCopy& copy, Slot end, std::span<std::byte> records,
                           std::vector<std::byte>& current) const {
  const ColdPart& part = copy.cold.back();
  const Slot begin = copy.cold_place;
  const std::size_t bytes = shard_->row_bytes();
  copy.status = part.file->Read(begin, records.first((end - begin) * bytes));
  for (Slot place = begin; place < end && copy.status.ok(); ++place) {
    if (!part.IsLive(place)) continue;
    const std::span<std::byte> record = records.subspan((place - begin) * bytes, bytes);
    if (!ColdFile::Unpack(record)) {
      copy.status = part.file->Damaged(place, {});
      return;
    }
    AddTo(copy, {reinterpret_cast<RowHeader*>(record.data()), kNoSlot}, current);
  }
}

void RowTable::CopyAhead(RowCopy& copy, std::span<SelectedRows* const> gradients) const {
  std::vector<std::byte> current;
  for (const SelectedRows* const gradient : gradients) {
    shard_->Visit(gradient->rows, [&](std::size_t, Row row) {
      if (!row || row.slot < copy.next || row.slot >= copy.end || copy.ahead[row.slot]) return;
      AddTo(copy, row, current);
      copy.ahead[row.slot] = true;
    });
  }
}

Status RowTable::Publish() const {
  RowCopy copy = BeginCopy();
  CopyRows(copy, row_count());
  PENSTOCK_RETURN_IF_ERROR(copy.status);
  copy.Sort();
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    SelectedRows published{.rows = copy.rows.rows};
    published.height = height_;
    published.value = i == 0 ? copy.rows.value : copy.states[i - 1];
    published.start = columns_[i].start;
    columns_[i].variable->As<SelectedRows>() = std::move(published);
  }
  return OkStatus();
}

}  // namespace penstock::table
