#include "executor/table/row_life.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace penstock::table {
namespace {

// A slice of a sweep, in units of one header that is looked at. Measured: a quarter of a millisecond.
constexpr std::size_t kSliceWork = 40960;
constexpr std::size_t kEraseWork = 24;  // the erasure of a row
constexpr std::size_t kSettleLines = 4096;
constexpr std::size_t kErasedAtATime = 64;
constexpr Slot kAhead = 24;                // headers fetched before they are looked at
constexpr std::uint64_t kIndexBytes = 12;  // of a row, on average
constexpr std::uint64_t kSpareShare = 16;  // of the budget, made free at once
constexpr std::size_t kEnteredMost = 1024;

}  // namespace

RowLife::RowLife(const RowPolicy& policy, std::size_t row_bytes)
    : entry_(policy),
      eviction_(policy),
      budget_bytes_(policy.has_cold() ? 0 : static_cast<std::uint64_t>(policy.budget_mb) << 20),
      row_bytes_(row_bytes + kIndexBytes),
      candidate_bytes_(sizeof(RowHeader) + kIndexBytes),
      candidates_({}) {}

void RowLife::RemoveLater(std::uint64_t version, std::uint64_t bytes) {
  if (budget_bytes_ > 0 && version >= touched_.dropped_below()) removals_[version] += bytes;
}

void RowLife::Reset(Row row, const std::function<void(Row)>& reset) {
  ++counts_.evicted;
  RemoveLater(row.header->version, row_bytes_);
  *row.header = {.id = row.header->id};
  reset(row);
}

void RowLife::Admit(Shard& rows, std::span<SelectedRows* const> gradients, std::uint64_t version,
                    const std::function<void(Row)>& reset) {
  const std::uint64_t now = version - 1;
  if (!entry_.any()) {
    for (const SelectedRows* const gradient : gradients) {
      rows.Visit(gradient->rows, [&](std::size_t, Row row) {
        if (row && !IsStored(row, now)) Reset(row, reset);
      });
    }
    return;
  }
  for (const SelectedRows* const gradient : gradients) NoteAbsent(rows, gradient->rows, version);
  for (SelectedRows* const gradient : gradients) DropAbsent(rows, *gradient, version, reset);
}

void RowLife::NoteAbsent(const Shard& rows, std::span<const std::int64_t> ids, std::uint64_t version) {
  absent_.clear();
  rows.Visit(ids, [&](std::size_t i, Row row) {
    if (!IsStored(row, version - 1)) absent_.push_back(ids[i]);
  });
  candidates_.Require(
      absent_, [&](std::size_t, Row candidate) { Note(*candidate.header, version); }, [](Row) {});
}

// Counts the update once for each candidate that it lists.
void RowLife::Note(RowHeader& candidate, std::uint64_t version) {
  if (candidate.version == version && candidate.count > 0) return;
  if (candidate.entry == kEnters) {  // in an earlier update; its row is gone
    candidate.count = 0;
    --entered_;
  } else if (candidate.count > 0 && IsLost(candidate, version - 1)) {
    RemoveLater(candidate.version, candidate_bytes_);
    candidate.count = 0;
  } else if (candidate.count > 0 && budget_bytes_ > 0) {
    touched_.Remove(candidate.version, candidate_bytes_);
  }
  candidate.version = version;
  ++candidate.count;
  candidate.entry = entry_.Enters(candidate.id, candidate.count) ? kEnters : kWaits;
  if (candidate.entry == kEnters) {
    ++entered_;
  } else if (budget_bytes_ > 0) {
    touched_.Add(version, candidate_bytes_);
  }
}

void RowLife::DropAbsent(Shard& rows, SelectedRows& gradient, std::uint64_t version,
                         const std::function<void(Row)>& reset) {
  std::vector<std::int64_t>& ids = gradient.rows;
  keeps_.assign(ids.size(), 1);
  std::size_t kept = ids.size();
  rows.Visit(ids, [&](std::size_t i, Row row) {
    if (IsStored(row, version - 1)) return;
    const Row candidate = candidates_.Find(ids[i]);
    if (candidate.header->entry != kEnters) {
      keeps_[i] = 0;
      --kept;
    } else if (row) {
      Reset(row, reset);
    }
  });
  if (kept == ids.size()) return;
  counts_.rejected += ids.size() - kept;
  const std::size_t bytes = gradient.value.bytes() / ids.size();
  std::byte* const values = gradient.value.raw();
  std::size_t to = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (keeps_[i] == 0) continue;
    if (to != i) {
      ids[to] = ids[i];
      std::memcpy(values + to * bytes, values + i * bytes, bytes);
    }
    ++to;
  }
  ids.resize(kept);
  gradient.value = gradient.value.Rows(0, static_cast<Dim>(kept));
}

void RowLife::Touch(RowHeader& row, std::uint64_t version) {
  const bool is_new = row.count == 0;
  if (is_new) ++counts_.entered;
  row.shows = is_new ? 1 : eviction_.ShowsAfter(row, version);
  if (budget_bytes_ == 0) return;
  if (!is_new) touched_.Remove(row.version, row_bytes_);
  touched_.Add(version, row_bytes_);
}

void RowLife::Load(RowHeader& row) {
  row.count = 1;
  row.shows = 1;
  if (budget_bytes_ > 0) touched_.Add(row.version, row_bytes_);
}

void RowLife::EndUpdate(Shard& rows, std::uint64_t version, const Shard::Moved& moved) {
  version_ = version;
  const std::uint64_t every = eviction_.sweep_every();
  bool sweeps = (every > 0 && version % every == 0) || entered_ > kEnteredMost + candidates_.size() / 8;
  if (budget_bytes_ > 0 && touched_.total() > budget_bytes_) {
    const std::uint64_t below = touched_.dropped_below();
    const std::uint64_t target = budget_bytes_ - budget_bytes_ / kSpareShare;
    sweeps = touched_.DropOldest(touched_.total() - target, version) != below || sweeps;
  }
  if (sweeps) BeginSweep(rows, moved);
}

// With a budget and a rule, a sweep must be complete before the next begins: only then does the histogram,
// and with it the next threshold, not depend on how far this one has come.
void RowLife::BeginSweep(Shard& rows, const Shard::Moved& moved) {
  if (budget_bytes_ > 0 && eviction_.any()) {
    while (sweeping()) Sweep(rows, moved);
    for (const auto& [touched, bytes] : std::exchange(removals_, {})) touched_.Remove(touched, bytes);
  }
  again_ = sweeping();
  if (again_) return;
  swept_at_ = version_;
  rows_left_ = eviction_.any() || budget_bytes_ > 0 ? rows.size() : 0;
  candidates_left_ = candidates_.size();
  releasing_ = true;
}

// `take` says whether a row is gone, and notes that it is erased.
template <typename Take>
void RowLife::SweepSome(Shard& shard, Slot& left, std::size_t& work, const Take& take,
                        const Shard::Moved& moved) {
  std::array<Slot, kErasedAtATime> slots;
  while (left > 0 && work < kSliceWork) {
    std::size_t taken = 0;
    for (; left > 0 && taken < slots.size() && work < kSliceWork; ++work) {
      --left;
      if (left >= kAhead) __builtin_prefetch(shard.At(left - kAhead).header);
      if (take(*shard.At(left).header)) slots[taken++] = left;
    }
    work += taken * kEraseWork;
    shard.Erase(std::span(slots).first(taken), moved);
  }
}

bool RowLife::Sweep(Shard& rows, const Shard::Moved& moved) {
  std::size_t work = 0;
  if (rows_left_ > 0) {
    if (!rows.Settle(kSettleLines)) return true;
    const auto take = [&](const RowHeader& row) {
      if (!IsGone(row, swept_at_)) return false;
      ++counts_.evicted;
      RemoveLater(row.version, row_bytes_);
      NoteTaken(row, kNotedGone);
      return true;
    };
    SweepSome(rows, rows_left_, work, take, moved);
  }
  if (rows_left_ == 0 && candidates_left_ > 0 && work < kSliceWork) {
    if (!candidates_.Settle(kSettleLines)) return true;
    const auto take = [&](const RowHeader& candidate) {
      if (candidate.entry == kEnters) {
        --entered_;
        return true;
      }
      if (!IsLost(candidate, swept_at_)) return false;
      RemoveLater(candidate.version, candidate_bytes_);
      NoteTaken(candidate, kForgotten);
      return true;
    };
    SweepSome(candidates_, candidates_left_, work, take, {});
  }
  if (rows_left_ > 0 || candidates_left_ > 0 || work >= kSliceWork) return sweeping();
  releasing_ = rows.ReleaseSpare() || candidates_.ReleaseSpare();
  if (!releasing_ && again_) BeginSweep(rows, moved);
  return sweeping();
}

}  // namespace penstock::table
