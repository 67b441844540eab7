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
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "executor/table/row_copy.h"
#include "executor/table/row_rules.h"
#include "executor/table/shard.h"
#include "executor/table/touch_histogram.h"
#include "framework/tensor/variable.h"

namespace penstock::table {

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
    return IsGone(row, LifeClock{.version = now, .dropped_below = touched_.dropped_below()});
  }
  bool IsGone(const RowHeader& row, const LifeClock& clock) const {
    return row.version < clock.dropped_below || eviction_.IsGone(row, clock.version);
  }
  LifeClock clock(std::uint64_t now) const { return {now, touched_.dropped_below()}; }
  std::uint64_t GoneFrom(const RowHeader& row) const { return eviction_.GoneFrom(row); }
  // A row that was gone has been taken back elsewhere than by Sweep.
  void TookBack(const RowHeader& row) {
    ++counts_.evicted;
    NoteTaken(row, kNotedGone);
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

  // What checkpoints keep beside the rows: the clock, and candidates, in no order; `since`: those that have
  // changed after this version. All the candidates that there are count for `all`.
  LifeCopy CopyCandidates(std::uint64_t now, std::optional<std::uint64_t> since, Dim& all) const;
  static void WriteFields(const RowHeader& header, bool is_candidate, std::int64_t* fields);
  // The same candidates for a checkpoint, and the ids that have been forgotten since the last call, or whose
  // rows were taken back.
  LifeCopy CutCandidates(std::uint64_t now, std::optional<std::uint64_t> since, Dim& all,
                         std::vector<std::int64_t>& gone);
  // Notes for checkpoints that a row is gone, which must be; whether it was not noted before.
  static bool NoteGone(RowHeader& row) { return std::exchange(row.entry, kNotedGone) != kNotedGone; }
  // Whether an update may move rows, because a sweep must be complete before it.
  bool SweepsInUpdates() const { return budget_bytes_ > 0 && eviction_.any(); }
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
  // RowHeader::entry. kEnters: in its version; kForgotten: lost, and noted for checkpoints.
  enum Candidate : std::uint32_t { kWaits, kEnters, kForgotten };
  static constexpr std::uint32_t kNotedGone = ~std::uint32_t{0};  // RowHeader::entry of a row
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
  void NoteTaken(const RowHeader& header, std::uint32_t noted) {
    if (notes_taken_ && header.entry != noted) taken_.push_back(header.id);
  }
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
  bool notes_taken_ = false;                  // for checkpoints, from the first on
  std::vector<std::int64_t> taken_;           // ids whose headers were taken back since the last one
  RowCounts counts_;
  // Of Admit; members to reuse their memory.
  std::vector<std::int64_t> absent_;
  std::vector<std::uint8_t> keeps_;
};

}  // namespace penstock::table
