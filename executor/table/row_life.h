// The entry and eviction of rows of one shard by a RowPolicy.
//
//   RowLife life(policy, row_bytes);
//   life.Admit(shard, gradients, version, reset);      // before the update that makes this version
//   life.Touch(*row.header, version);                  // for each row of the update, once
//   life.EndUpdate(shard, version, moved);
//   while (life.Sweep(shard, moved)) ...               // at any time between updates and reads
//
// Eviction has two parts. By its rules a row is gone from a certain version on (IsGone): reads and updates
// take it for a row that is not there. When its memory is taken back, by a sweep, is not visible; so results
// depend neither on the speed of sweeps nor on the order of rows. To stay in a budget, all rows that were
// last touched below a certain version go; each update decides by a histogram of their bytes.
//
// An id that has not entered is a candidate: a header without a row, which counts the steps that list it.
//
// Not thread-safe; IsGone may run beside itself.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "executor/table/row_rules.h"
#include "executor/table/shard.h"
#include "executor/table/touch_histogram.h"
#include "framework/tensor/variable.h"

namespace penstock::table {

// What a checkpoint keeps of rows that are not gone, and of candidates.
struct LifeCopy {
  static constexpr Dim kFields = 4;
  SelectedRows headers;  // by ascending id, int64[?, 4]: is a candidate, version, count, the bits of shows
  Tensor clock;          // int64[2]: the version of the table, and the versions of a bucket of the histogram
};

// Since the table was made. A row that enters again counts again.
struct RowCounts {
  std::uint64_t entered = 0;   // rows made
  std::uint64_t rejected = 0;  // rows of gradients dropped, because their ids had not entered
  std::uint64_t evicted = 0;   // rows whose memory was taken back, or taken for the same id again
};

class RowLife {
 public:
  // `row_bytes`: the memory of a row, without its entry in the index.
  RowLife(const RowPolicy& policy, std::size_t row_bytes);

  bool IsGone(const RowHeader& row, std::uint64_t now) const {
    return row.version < touched_.dropped_below() || eviction_.IsGone(row, now);
  }
  // Removes the rows of ids that do not enter from the gradients of the update that makes `version`. Calls
  // reset(row) for each listed row that is gone and enters again: it must get its initial values.
  void Admit(Shard& rows, std::span<SelectedRows* const> gradients, std::uint64_t version,
             const std::function<void(Row)>& reset);
  // Counts the update in the row's header, before its version changes. The header of a new row is 0.
  void Touch(RowHeader& row, std::uint64_t version);
  // A row that is there from the start.
  void Load(RowHeader& row);
  // Decides which rows exceed the budget.
  void EndUpdate(Shard& rows, std::uint64_t version, const Shard::Moved& moved);

  LifeCopy Copy(const Shard& rows, std::uint64_t now) const;
  // Replaces what is known of rows that are there; others are left out. Call before the first update.
  void Restore(Shard& rows, const LifeCopy& copy);

  // Whether a sweep has begun.
  bool sweeping() const { return rows_left_ > 0 || candidates_left_ > 0 || releasing_; }
  // Takes back the memory of some rows that are gone, in less than a millisecond. Returns sweeping(). Calls
  // moved(from, to) as Shard::Erase does.
  bool Sweep(Shard& rows, const Shard::Moved& moved);

  const RowCounts& counts() const { return counts_; }
  std::size_t candidate_count() const { return candidates_.size(); }

 private:
  enum Candidate : std::uint32_t { kWaits, kEnters };  // RowHeader::entry; kEnters: in its version
  bool IsLost(const RowHeader& candidate, std::uint64_t now) const {
    return candidate.version < touched_.dropped_below() || eviction_.IsForgotten(candidate, now);
  }
  bool IsStored(Row row, std::uint64_t now) const {  // count is 0 between Admit and Touch
    return row && (row.header->count == 0 || !IsGone(*row.header, now));
  }
  void NoteAbsent(const Shard& rows, std::span<const std::int64_t> ids, std::uint64_t version);
  void Note(RowHeader& candidate, std::uint64_t version);
  void DropAbsent(Shard& rows, SelectedRows& gradient, std::uint64_t version,
                  const std::function<void(Row)>& reset);
  void Reset(Row row, const std::function<void(Row)>& reset);
  void RemoveLater(std::uint64_t version, std::uint64_t bytes);
  void BeginSweep(Shard& rows, const Shard::Moved& moved);
  template <typename Take>
  void SweepSome(Shard& shard, Slot& left, std::size_t& work, const Take& take, const Shard::Moved& moved);

  const EntryRule entry_;
  const EvictionRule eviction_;
  const std::uint64_t budget_bytes_;  // 0: no budget
  const std::uint64_t row_bytes_, candidate_bytes_;

  Shard candidates_;
  std::size_t entered_ = 0;  // candidates that have entered and whose memory is not taken back yet
  TouchHistogram touched_;   // with a budget: of rows and candidates
  // Bytes by version that leave touched_ when the next sweep begins, so that it does not depend on the speed
  // of this one.
  std::map<std::uint64_t, std::uint64_t> removals_;
  std::uint64_t version_ = 0;                 // after the last update
  std::uint64_t swept_at_ = 0;                // the version by which the sweep judges rows
  Slot rows_left_ = 0, candidates_left_ = 0;  // slots below are not looked at yet
  bool releasing_ = false;                    // memory behind the rows
  bool again_ = false;                        // another sweep follows
  RowCounts counts_;
  // Of Admit; members to reuse their memory.
  std::vector<std::int64_t> absent_;
  std::vector<std::uint8_t> keeps_;
};

}  // namespace penstock::table
