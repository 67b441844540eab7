// A copy of a table's rows as they are at one time, made in portions while the table changes.
//
//   RowCopy copy = table.BeginCopy();                    // the rows of now
//   while (!table.CopyRows(copy, 1000)) ...              // in between, reads; updates only after
//   if (table.CopiesAhead(copy)) table.CopyAhead(copy, gradients);   // what they are about to change
//   SortRows(copy.rows, states);                         // by id; on any thread
//
// For a checkpoint, the rows so far can be taken after each portion, so a copy need not hold them all:
//
//   RowCopy copy = table.BeginCut(true, 1000);           // what has changed since the last BeginCut
//   bool complete = false;
//   while (!complete) {
//     complete = table.CopyRows(copy, 1000);
//     RowCopy rows = copy.TakeRows();
//   }
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "executor/table/cold_log.h"
#include "executor/table/shard.h"
#include "framework/tensor/variable.h"

namespace penstock::table {

enum class CopiedRows {
  kCurrent,  // as Read returns them
  kStored,   // as they lie, with the updates that they have
};

// Of a checkpoint: what a table notes of its rows from one to the next.
struct CutNotes {
  std::uint64_t version = 0;          // of the table
  std::vector<std::uint64_t> hashes;  // of columns, by slot; 0: not known
};
// By which a policy judges whether a row is gone.
struct LifeClock {
  std::uint64_t version = 0, dropped_below = 0;
};

// What a checkpoint keeps of rows that are not gone, and of candidates.
struct LifeCopy {
  static constexpr Dim kFields = 4;
  SelectedRows headers;  // int64[?, 4]: is a candidate, version, count, the bits of shows
  Tensor clock;          // int64[2]: the version of the table, and the versions of a bucket of the histogram
};

// Rows are in the order in which they were copied; their tensors have memory for more rows. After SortRows
// they have those rows alone, by ascending id.
struct RowCopy {
  CopiedRows kind = CopiedRows::kCurrent;
  std::optional<std::uint64_t> since;  // only rows that were changed after this version of the table
  LifeClock clock = {};                // of the table when the copy began
  CutNotes* notes = nullptr;           // of a checkpoint
  Slot next = 0, end = 0;              // slots that are not copied yet
  Dim portion = 1;                     // rows for which memory is taken at once
  std::vector<bool> ahead;             // by slot: copied before its turn, because an update was to change it
  // Only rows that are gone from this version on, by rules of eviction alone, if nothing lists them.
  std::optional<std::uint64_t> leaving = {};
  // Cold rows that are not copied yet: their number, and where the next one is looked for.
  std::vector<ColdPart> cold;
  Slot cold_left = 0, cold_place = 0;
  Status status = {};  // of reading them
  SelectedRows rows;
  std::vector<Tensor> states;  // the same rows of the other columns
  // Of kStored, in a table whose rows may have missed updates: the number of updates that each row has,
  // i64[rows, 1], and of every update of the table what StepHistory notes, f64[updates]. Else uninitialized.
  Tensor versions, history;
  // Of kStored, with a policy: what it keeps of the same rows, i64[rows, LifeCopy::kFields].
  Tensor life;
  std::vector<std::int64_t> gone;           // of a checkpoint with `since`: ids that have lost their rows
  Dim stored = 0;                           // rows so far, whether they are in the copy or not
  std::optional<LifeCopy> candidates = {};  // with a policy: the others of which it keeps something
  Dim candidates_all = 0;                   // whether they are in the copy or not

  bool complete() const { return (next == end && cold_left == 0) || !status.ok(); }
  // Enlarges the tensors for more rows.
  void MakeRoom();
  // `candidates`, and the same of the rows.
  LifeCopy TakeLife();
  // All of these tensors that are in use, without `history`.
  std::vector<Tensor*> Columns();
  // The rows so far, `gone`, `history` and `candidates`; they are not in this copy any more.
  RowCopy TakeRows();
  // Sorts the rows and all that belongs to them.
  void Sort();
};

// Puts rows, which have distinct ids, in ascending order, and the same rows of each of `states`. Tensors may
// have more rows than there are ids; these are removed.
void SortRows(SelectedRows& rows, std::span<Tensor* const> states);

}  // namespace penstock::table
