// One server's rows of a table sharded by id, with the optimizer's state of each.
//
//   PENSTOCK_ASSIGN_OR_RETURN(RowTable table, RowTable::Make({2001, 32}, {{"t", t}, {"t_moment", moment}}));
//   table.Read(ids, padding, bytes);            // stored rows, or initial values
//   table.Require(grad.rows);                   // creates these rows if needed
//   table.PositionOf(grad.rows[0]);             // their position in each column
//   table.column(1);                            // f32[table.capacity(), 32]
//   table.Publish();                            // t and moment list the rows
//   RowCopy copy = table.BeginCopy();           // of the table and its states, in portions
//   while (!table.CopyRows(copy, 1000)) ...     // in between, no row may change
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "framework/base/status.h"
#include "framework/tensor/row_start.h"
#include "framework/tensor/variable.h"

namespace penstock::table {

// The table's rows at the time when the copy began; complete once CopyRows returns true.
struct RowCopy {
  std::vector<Dim> order;      // positions by ascending id
  SelectedRows rows;           // the rows copied so far, in that order
  std::vector<Tensor> states;  // the same rows of the other columns
};

class RowTable {
 public:
  struct ColumnSource {
    std::string name;
    Variable* variable;  // outlives the table
  };

  // `whole` is the table over all servers; ids are any int64, whatever its height. The first column is the
  // table itself. Rows that the variables list are stored from the start. kFailedPrecondition
  // E-server-startup: a variable has neither rows nor initial values for them. kInvalidArgument
  // E-server-shape: the columns do not match, or one is not selected rows.
  static Result<RowTable> Make(const Shape& whole, const std::vector<ColumnSource>& columns);

  // Creates the rows of `ids` that are not stored yet.
  void Require(std::span<const std::int64_t> ids);
  Dim PositionOf(std::int64_t id) const { return positions_.at(id); }  // the row must be stored
  Dim row_count() const { return static_cast<Dim>(rows_.size()); }
  Dim capacity() const { return capacity_; }

  std::size_t column_count() const { return columns_.size(); }
  const std::string& name(std::size_t column) const { return columns_[column].name; }
  // [capacity, width...]; positions from row_count() on are unused.
  Tensor& column(std::size_t column) { return columns_[column].values; }

  // Writes the row of each id, one after the other; zeros for `padding`, unless that is -1.
  void Read(std::span<const std::int64_t> ids, std::int64_t padding, std::byte* out) const;
  // Makes the variables list the stored rows, in ascending order.
  void Publish() const;

  // Copies all columns in portions. Between two portions rows may be read, but neither created nor changed.
  RowCopy BeginCopy() const;
  // Copies up to `rows_max` more rows. Returns true when all are copied.
  bool CopyRows(RowCopy& copy, Dim rows_max) const;

 private:
  struct Column {
    std::string name;
    Variable* variable;
    Tensor values;
    std::shared_ptr<const RowStart> start;  // null: zeros
    Dim width() const { return values.shape().RowWidth(); }
    std::size_t row_bytes() const { return static_cast<std::size_t>(width()) * SizeOf(values.dtype()); }
    std::byte* At(Dim position) const {
      return values.raw() + static_cast<std::size_t>(position) * row_bytes();
    }
    void MakeRow(std::int64_t id, std::byte* out) const;
  };

  static Status AddColumn(const Shape& whole, const ColumnSource& source, RowTable& table);
  void Grow(Dim rows);
  std::vector<Dim> Order() const;
  // Writes to `to` the values of the rows in places [begin, end) of `order`, from the place `begin` on.
  static void CopyValues(const Column& column, const std::vector<Dim>& order, std::size_t begin,
                         std::size_t end, Tensor& to);

  std::int64_t height_ = 0;
  Dim capacity_ = 0;
  std::vector<std::int64_t> rows_;  // by position
  std::unordered_map<std::int64_t, Dim> positions_;
  std::vector<Column> columns_;
};

}  // namespace penstock::table
