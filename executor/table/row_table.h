// One server's rows of a table sharded by id, with the optimizer's state of each.
//
//   PENSTOCK_ASSIGN_OR_RETURN(RowTable table, RowTable::Make({2001, 32}, {{"t", t}, {"t_moment", moment}}));
//   table.Read(ids, padding, bytes);            // stored rows, or initial values
//   table.Require(grad.rows);                   // creates these rows if needed
//   table.PositionOf(grad.rows[0]);             // their position in each column
//   table.column(1);                            // f32[table.capacity(), 32]
//   table.Publish();                            // t and moment list the rows
//   RowCopy copy = table.BeginCopy();           // of the table and its states, in portions (row_copy.h)
//   while (!table.CopyRows(copy, 1000)) ...
//
// For a RowRule, Layout::kRows keeps a row's value and states together, and Update takes the place of Require
// and of work on columns. If the rule also changes rows that a gradient does not list, such a row is stored
// as its last update left it, and gets what it missed (RowRule::CatchUp) before its next update, and in what
// Read, copies and Publish return. Only Update changes stored rows.
//
//   PENSTOCK_ASSIGN_OR_RETURN(
//       RowTable table,
//       RowTable::Make({2001, 32}, {{"t", t}, {"t_moment", moment}}, RowTable::Layout::kRows));
//   table.UseRule(rule, {0, 1});                // the table and its state, in the rule's order
//   table.Update({.gradients = gradients, .rate = rate});
//
// With a RowPolicy, ids enter and rows are evicted by its rules. On columns, an update begins with Admit and
// ends with EndUpdate. `while (table.Sweep()) ...` takes back the memory of evicted rows, a millisecond at a
// time; this changes nothing else.
//
// With a RowPolicy of cold_dir, rows beyond its budget are on disk (cold_tier.h): `table.Fetch(ids)` must be
// called with the ids of each Update and Read before it. `Sweep` moves rows; nothing but memory and time
// depends on it.
//
// Not thread-safe; const calls may run beside each other.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/table/cold_tier.h"
#include "executor/table/row_copy.h"
#include "executor/table/row_life.h"
#include "executor/table/shard.h"
#include "framework/base/status.h"
#include "framework/op/row_rule.h"
#include "framework/tensor/row_start.h"
#include "framework/tensor/variable.h"

namespace penstock::table {

// Of a table with cold_dir: the disk that has the folder, and a name that tells its files from others.
struct ColdFiles {
  Disk* disk = nullptr;
  std::string name;
};

class RowTable {
 public:
  struct ColumnSource {
    std::string name;
    Variable* variable;  // outlives the table
  };
  enum class Layout {
    kColumns,  // a tensor for each column
    kRows,     // a row's columns are together
  };

  // `whole` is the table over all servers; ids are any int64, whatever its height. The first column is the
  // table itself. Rows that the variables list are stored from the start. kFailedPrecondition
  // E-server-startup: a variable has neither rows nor initial values for them. kInvalidArgument
  // E-server-shape: the columns do not match, or one is not selected rows. kUnimplemented E-server-cold:
  // columns with cold_dir, which also needs `cold`.
  static Result<RowTable> Make(const Shape& whole, const std::vector<ColumnSource>& columns,
                               Layout layout = Layout::kColumns, const RowPolicy& policy = {},
                               const ColdFiles& cold = {});

  Dim row_count() const {
    return static_cast<Dim>(shard_->size()) + static_cast<Dim>(cold_ == nullptr ? 0 : cold_->size());
  }  // evicted ones too, until they are swept
  std::size_t column_count() const { return columns_.size(); }
  const std::string& name(std::size_t column) const { return columns_[column].name; }

  // kColumns, with a policy; otherwise they do nothing. Before Require: removes the rows of ids that have not
  // entered. After the update: decides which rows exceed the budget.
  void Admit(std::span<SelectedRows* const> gradients);
  void EndUpdate();
  // kColumns. Creates the rows of `ids` that are not stored yet.
  void Require(std::span<const std::int64_t> ids);
  Dim PositionOf(std::int64_t id) const { return shard_->Find(id).slot; }  // the row must be stored
  Dim capacity() const { return capacity_; }
  // [capacity, width...]; positions from row_count() on are unused.
  Tensor& column(std::size_t column) { return columns_[column].values; }

  // kRows. How rows are updated; `columns`: of the table, in the order of the rule. Call it before Update.
  void UseRule(std::shared_ptr<const RowRule> rule, const std::vector<std::size_t>& columns);
  // Whether rows may miss updates: the rule also changes rows that a gradient does not list.
  bool KeepsHistory() const { return history_ != nullptr; }
  // Continues from a copy of kind kStored, whose rows are those that the variables listed, in that order.
  // Call it after UseRule. kInvalidArgument E-server-shape: the tensors are not those of such a copy.
  Status Continue(const Tensor& versions, const Tensor& history);
  // One step of the optimizer; all of `gradients` are f32 or f64 as the columns are.
  struct Step {
    std::span<SelectedRows* const> gradients;  // added by id, in this order; their values are then undefined
    std::optional<float> factor = {};          // multiplies the sums
    const std::byte* rate = nullptr;           // as in RowStep
    std::span<std::byte* const> whole = {};
  };
  // Creates the rows that are not stored yet. The bytes are those of `sum`, `scale` and the rule's op on
  // columns, up to the rounding of CatchUp. Throws std::bad_alloc, before any row changes.
  void Update(const Step& step);

  // Brings rows of these ids from disk, if they are there. kDataLoss E-table-cold-damaged, E-file-short,
  // kInvalidArgument E-file-read: a row cannot be read; E-file-write, kFailedPrecondition E-table-cold-full:
  // rows could not be moved to disk since the last call.
  Status Fetch(std::span<const std::int64_t> ids) {
    return cold_ == nullptr ? OkStatus() : cold_->Fetch(*shard_, ids);
  }
  bool has_cold_rows() const { return cold_ != nullptr; }
  bool moving() const { return cold_ != nullptr && cold_->moving(*shard_, version_); }
  ColdCounts cold_counts() const { return cold_ == nullptr ? ColdCounts() : cold_->counts(*shard_); }

  // Writes the row of each id, one after the other; zeros for `padding`, unless that is -1.
  void Read(std::span<const std::int64_t> ids, std::int64_t padding, std::byte* out) const;
  // From now on, ReadLast can be called. Call it after UseRule and Continue.
  void KeepLast();
  // Reads as before the last update, but rows that it listed, or that a policy evicted by it, as they are.
  void ReadLast(std::span<const std::int64_t> ids, std::int64_t padding, std::byte* out) const;
  bool has_policy() const { return life_ != nullptr; }
  // Makes the variables list the stored rows that are not evicted, in ascending order. Errors of Fetch.
  Status Publish() const;

  // Whether evicted rows take memory, or rows are to be moved to disk; does some of it, and returns the same.
  // Not during a copy.
  bool sweeping() const {
    return (life_ != nullptr && life_->sweeping()) ||
           (cold_ != nullptr && cold_->sweeping(*shard_, version_));
  }
  bool Sweep();
  // With a policy: what a checkpoint keeps beside the rows, and how it continues, before the first update.
  // kInvalidArgument E-server-shape: it is of rows that the table does not have.
  LifeCopy CopyLife() const;
  Status RestoreLife(const LifeCopy& copy);
  RowCounts counts() const { return life_ == nullptr ? RowCounts() : life_->counts(); }

  // Copies all columns in portions, as the rows are now; `since`: only rows that were changed after this
  // version, which requires NotesChanges. Between two portions rows may be read. Before an update,
  // CopyAhead copies the rows that it changes; where the table cannot say which (CopiesAhead), copy the rest.
  RowCopy BeginCopy(CopiedRows kind = CopiedRows::kCurrent, std::optional<std::uint64_t> since = {}) const;
  // The same of kind kStored for a checkpoint; `changes`: only what has changed since the last call, and the
  // ids of rows that are gone since then. Of columns, a hash of each row tells whether it has changed.
  // `portion`: the rows of a portion, whose memory is taken as it is needed.
  RowCopy BeginCut(bool changes, Dim portion);
  // All at once: the rows that the next update evicts unless it lists them. Requires a policy without a
  // budget, or with cold_dir.
  RowCopy CopyLeaving() const;
  // Goes through up to `rows_max` more rows. Returns true when all are copied, or RowCopy::status is an
  // error. Cold rows may be fetched meanwhile.
  bool CopyRows(RowCopy& copy, Dim rows_max) const;
  bool CopiesAhead(const RowCopy& copy) const;
  void CopyAhead(RowCopy& copy, std::span<SelectedRows* const> gradients) const;
  // Whether each row's header says after which version it was changed last.
  bool NotesChanges() const { return layout_ == Layout::kRows; }
  std::uint64_t version() const { return version_; }

 private:
  struct Column {
    std::string name;
    Variable* variable;
    std::shared_ptr<const RowStart> start;  // null: zeros
    Tensor values;  // kColumns: by slot; kRows: without rows, for the type and the width
    Dim width() const { return values.shape().RowWidth(); }
    std::size_t bytes = 0;  // of a row
    std::size_t row_bytes() const { return bytes; }
    void MakeRow(std::int64_t id, std::byte* out) const;
  };

  Status AddColumn(const Shape& whole, const ColumnSource& source);
  Status AddRows(const Shape& whole);
  void BeginLife(const RowPolicy& policy);
  Status BeginCold(const RowPolicy& policy, const ColdFiles& cold);
  void CopyColdRows(RowCopy& copy, Dim rows_max) const;
  // Those from RowCopy::cold_place on. `records`: memory for them.
  void CopyRecords(RowCopy& copy, Slot end, std::span<std::byte> records,
                   std::vector<std::byte>& current) const;
  void Grow(Dim rows);
  void Touch(std::span<const std::int64_t> ids);
  void Shrink();
  void SetCapacity(Dim capacity, Dim made);
  void Moved(Slot from, Slot to);
  Shard::Moved OnMove();
  bool IsStored(Row row) const { return row && (life_ == nullptr || !life_->IsGone(*row.header, version_)); }
  void MakeRow(Row row);
  std::byte* At(std::size_t column, Row row) const;
  template <typename T>
  void Merge(std::span<SelectedRows* const> gradients);
  void CatchUp(std::size_t begin, std::size_t end);
  void CatchUpLast();
  RowStep CommonStep(const Step& step) const;
  // Of a stored row: `row` itself, or, if it missed updates, its copy in `copy` that has them.
  Row Current(Row row, std::vector<std::byte>& copy) const { return AfterSteps(history_.get(), row, copy); }
  Row AfterSteps(const StepHistory* steps, Row row, std::vector<std::byte>& copy) const;
  void ReadAfter(const StepHistory* steps, std::span<const std::int64_t> ids, std::int64_t padding,
                 std::byte* out) const;
  RowCopy MakeCopy(CopiedRows kind, std::optional<std::uint64_t> since, Dim portion) const;
  bool HasChanged(const RowCopy& copy, Row row) const;
  bool NoteGone(const RowCopy& copy, Row row) const;
  std::uint64_t HashOfColumns(Row row) const;
  // Adds the row, if it belongs to the copy. `current`: memory for a row that gets what it missed.
  void AddTo(RowCopy& copy, Row row, std::vector<std::byte>& current) const;

  static constexpr Dim kCapacityLeast = 16;

  Layout layout_ = Layout::kColumns;
  std::int64_t height_ = 0;
  Dim capacity_ = 0;                // of the columns
  std::uint64_t version_ = 0;       // updates
  std::unique_ptr<Shard> shard_;    // kColumns: headers alone
  std::unique_ptr<RowLife> life_;   // null without entry and eviction
  std::unique_ptr<ColdTier> cold_;  // null without cold_dir
  std::vector<Column> columns_;
  std::shared_ptr<const RowRule> rule_;
  std::vector<std::size_t> offsets_;           // of the rule's columns
  std::unique_ptr<StepHistory> history_;       // of all updates; null: rows miss nothing
  std::unique_ptr<StepHistory> last_history_;  // after KeepLast: without the last update
  std::shared_ptr<CutNotes> cut_notes_;        // from the first BeginCut on
  // Of an update; members to reuse their memory.
  std::vector<RowOfStep> merged_;
  std::vector<std::uint64_t> merged_versions_;  // before the update
};

}  // namespace penstock::table
