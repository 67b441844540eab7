// Reads rows back, and decides which go.
#include "executor/table/cold_tier.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstring>

namespace penstock::table {
namespace {

constexpr std::size_t kBatchBytesLeast = std::size_t{64} << 10, kBatchBytesMost = std::size_t{2} << 20;
constexpr std::uint64_t kBatchShare = 16;    // of the budget
constexpr std::uint64_t kHotShareLeast = 4;  // of the budget
constexpr Slot kSpareRowsShare = 16;         // of the rows, made free at once
constexpr Slot kExcessShare = 8;             // of the rows, before a table waits for the disk
constexpr std::size_t kStaleAtATime = 512;
constexpr std::size_t kIndexLines = 4096;

// From 1 to 2 MB, with a budget of 32 MB or more.
Slot BatchRows(std::uint64_t budget, std::size_t row_bytes) {
  const auto bytes = std::clamp<std::size_t>(budget / kBatchShare, kBatchBytesLeast, kBatchBytesMost);
  return static_cast<Slot>(std::bit_floor(std::max<std::size_t>(1, bytes / row_bytes)));
}

// Names of tables have any characters.
std::string FileName(const std::string& name) {
  std::string file = name;
  for (char& c : file) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '-') c = '_';
  }
  return file;
}

}  // namespace

ColdTier::ColdTier(const ColdPlace& place, std::uint64_t budget_bytes, std::size_t row_bytes)
    : budget_bytes_(budget_bytes),
      row_bytes_(row_bytes),
      batch_rows_(BatchRows(budget_bytes, row_bytes)),
      log_(*place.disk, place.folder + "/" + FileName(place.name), row_bytes, batch_rows_) {}

Result<std::unique_ptr<ColdTier>> ColdTier::Make(const ColdPlace& place, std::uint64_t budget_bytes,
                                                 std::size_t row_bytes) {
  PENSTOCK_RETURN_IF_ERROR(place.disk->MakeFolder(place.folder));
  return std::unique_ptr<ColdTier>(new ColdTier(place, budget_bytes, row_bytes));
}

// So many rows may be hot.
Slot ColdTier::HotMost(const Shard& rows) const {
  const std::uint64_t fixed = rows.index_bytes() + index_.memory_bytes() + log_.memory_bytes() +
                              batch_.capacity() + records_.capacity();
  const std::uint64_t least = budget_bytes_ / kHotShareLeast;
  const std::uint64_t bytes = budget_bytes_ > fixed + least ? budget_bytes_ - fixed : least;
  return static_cast<Slot>(std::clamp<std::uint64_t>(bytes / row_bytes_, 1, kNoSlot - 1));
}

bool ColdTier::IsOver(const Shard& rows, std::uint64_t version) const {
  if (rows.size() <= HotMost(rows)) return false;
  return rests_at_ != version || rows.size() > rests_with_ + batch_rows_;
}

ColdCounts ColdTier::counts(const Shard& rows) const {
  ColdCounts counts = counts_;
  counts.hot = rows.size();
  counts.cold = log_.live();
  counts.file_bytes = log_.file_bytes();
  return counts;
}

// Entries cannot be removed while the index grows.
void ColdTier::ForgetRecord(Slot record, std::uint32_t hash) {
  log_.Remove(record);
  if (stale_.empty() && index_.Settle(0)) {
    index_.Remove(hash, record);
  } else {
    stale_.emplace_back(hash, record);
  }
}

void ColdTier::Tidy() {
  if (!index_.Settle(kIndexLines)) return;
  for (std::size_t i = 0; i < kStaleAtATime && !stale_.empty(); ++i) {
    index_.Remove(stale_.back().first, stale_.back().second);
    stale_.pop_back();
  }
}

// The system begins to read all that is not cached before anything is awaited.
Status ColdTier::Fetch(Shard& rows, std::span<const std::int64_t> ids) {
  PENSTOCK_RETURN_IF_ERROR(failed_);
  if (log_.live() == 0) return OkStatus();
  counts_.asked += ids.size();
  missing_.clear();
  rows.Visit(ids, [&](std::size_t i, Row row) {
    if (!row) missing_.push_back(ids[i]);
  });
  for (const std::int64_t id : missing_) index_.Prefetch(HashOf(id));
  wanted_.clear();
  for (const std::int64_t id : missing_) {
    index_.Find(HashOf(id), [&](Slot record) {
      if (log_.IsLive(record)) wanted_.push_back({record, id});
      return false;  // another id may have the same hash
    });
  }
  std::ranges::sort(wanted_);
  wanted_.erase(std::unique(wanted_.begin(), wanted_.end()), wanted_.end());
  std::span<const Wanted> rest = wanted_;
  while (!rest.empty()) {
    const std::size_t count = std::min<std::size_t>(rest.size(), batch_rows_);
    PENSTOCK_RETURN_IF_ERROR(FetchSome(rows, rest.first(count)));
    rest = rest.subspan(count);
  }
  return OkStatus();
}

Status ColdTier::FetchSome(Shard& rows, std::span<const Wanted> wanted) {
  records_.resize(std::max(records_.size(), wanted.size() * row_bytes_));
  const auto record_of = [&](std::size_t i) {
    return std::span(records_).subspan(i * row_bytes_, row_bytes_);
  };
  not_cached_.clear();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const Slot number = wanted[i].record;
    if (!log_.FileOf(number).ReadIfCached(log_.PlaceOf(number), record_of(i))) not_cached_.push_back(i);
  }
  for (const std::size_t i : not_cached_) {
    const Slot number = wanted[i].record;
    Status read = log_.FileOf(number).Read(log_.PlaceOf(number), record_of(i));
    if (!read.ok()) return std::move(read).In(StrCat("row ", wanted[i].id));
  }
  found_.clear();
  sources_.clear();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto [number, id] = wanted[i];
    if (!ColdFile::Unpack(record_of(i))) return log_.FileOf(number).Damaged(log_.PlaceOf(number), StrCat(id));
    const auto* const header = reinterpret_cast<const RowHeader*>(record_of(i).data());
    if (header->id != id) continue;
    found_.push_back(id);
    sources_.emplace_back(number, record_of(i).data());
  }
  rows.Require(
      found_,
      [&](std::size_t i, Row row) {
        std::memcpy(row.header, sources_[i].second, row_bytes_);
        ForgetRecord(sources_[i].first, HashOf(found_[i]));
      },
      [](Row) {});
  counts_.fetched += found_.size();
  return OkStatus();
}

bool ColdTier::sweeping(const Shard& rows, std::uint64_t version) const {
  if (!failed_.ok()) return false;
  if (background_.started()) {
    return background_.finished() || rows.size() > HotMost(rows) + HotMost(rows) / kExcessShare;
  }
  return state_ != State::kIdle || !stale_.empty() || IsOver(rows, version) ||
         log_.FindToCompact(version).has_value();
}

// From a sample of the rows: the version below which those are that must go. Rows of the last update stay.
void ColdTier::BeginChoosing(Shard& rows, std::uint64_t version) {
  constexpr Slot kSample = 16384;
  constexpr Slot kAhead = 16;
  const Slot most = HotMost(rows);
  to_move_ = rows.size() - (most - most / kSpareRowsShare);
  const Slot stride = std::max<Slot>(1, rows.size() / kSample);
  std::vector<std::uint64_t> versions;
  for (Slot slot = 0; slot < rows.size(); slot += stride) {
    if (slot + kAhead * stride < rows.size()) __builtin_prefetch(rows.At(slot + kAhead * stride).header);
    versions.push_back(rows.At(slot).header->version);
  }
  const std::size_t at = std::min<std::size_t>(versions.size() - 1, to_move_ / stride);
  std::ranges::nth_element(versions, versions.begin() + static_cast<std::ptrdiff_t>(at));
  below_ = std::min(versions[at] + 1, version);
  left_ = rows.size();
  rests_at_ = version;
  state_ = State::kChoose;
}

}  // namespace penstock::table
