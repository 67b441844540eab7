#include "executor/table/row_table.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <numeric>
#include <utility>

namespace penstock::table {
namespace {

// The initial values of a table whose startup program, like Fluid's, created values but listed no row ids: id
// i starts from the given row i modulo their number.
class GivenRows : public RowStart {
 public:
  explicit GivenRows(Tensor values) : values_(std::move(values)) {}
  void Make(std::int64_t row, std::int64_t, std::byte* out) const override {
    const auto given_rows = static_cast<std::uint64_t>(values_.shape()[0]);
    const auto at = static_cast<Dim>(static_cast<std::uint64_t>(row) % given_rows);
    const Tensor given = values_.Rows(at, at + 1);
    std::memcpy(out, given.raw(), given.bytes());
  }

 private:
  const Tensor values_;
};

// Rows are short: copies by vectors, without a call.
inline void CopyBytes(const std::byte* from, std::size_t bytes, std::byte* to) {
  constexpr std::size_t kVector = 16;
  for (; bytes >= kVector; bytes -= kVector, from += kVector, to += kVector) std::memcpy(to, from, kVector);
  if (bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace

void RowTable::Column::MakeRow(std::int64_t id, std::byte* out) const {
  if (start != nullptr) {
    start->Make(id, width(), out);
  } else {
    std::memset(out, 0, row_bytes());
  }
}

Result<RowTable> RowTable::Make(const Shape& whole, const std::vector<ColumnSource>& columns, Layout layout,
                                const RowPolicy& policy, const ColdFiles& cold) {
  RowTable table;
  table.layout_ = layout;
  table.height_ = whole[0];
  for (const ColumnSource& source : columns) PENSTOCK_RETURN_IF_ERROR(table.AddColumn(whole, source));
  PENSTOCK_RETURN_IF_ERROR(table.AddRows(whole));
  if (policy.has_entry() || policy.has_eviction()) table.BeginLife(policy);
  if (policy.has_cold()) PENSTOCK_RETURN_IF_ERROR(table.BeginCold(policy, cold));
  return table;
}

Status RowTable::AddColumn(const Shape& whole, const ColumnSource& source) {
  const auto* rows = source.variable == nullptr ? nullptr : source.variable->If<SelectedRows>();
  if (source.variable != nullptr && source.variable->Is<Tensor>()) {
    return InvalidArgument("E-server-shape", source.name,
                           " is a whole tensor, and a table sharded by id is made row by row; ",
                           "initialize it with a constant or random numbers");
  }
  if (rows == nullptr || !rows->value.initialized()) {
    return FailedPrecondition("E-server-startup", source.name,
                              " has no rows on this pserver; run its startup program first");
  }
  if (rows->value.shape().WithRows(whole[0]) != whole) {
    return InvalidArgument("E-server-shape", source.name, " holds rows of ", rows->value.shape(),
                           ", the table is ", whole);
  }
  // A state that lists no rows gets the table's rows, with their initial values.
  if (!columns_.empty() && !rows->rows.empty() &&
      rows->rows != columns_.front().variable->As<SelectedRows>().rows) {
    return InvalidArgument("E-server-shape", source.name, " lists other rows than ", columns_.front().name);
  }
  Column& column = columns_.emplace_back();
  column.name = source.name;
  column.variable = source.variable;
  column.start = rows->start;
  if (rows->rows.empty() && rows->value.shape()[0] > 0)
    column.start = std::make_shared<GivenRows>(rows->value.Clone());
  column.values = Tensor(rows->value.dtype(), rows->value.shape().WithRows(0));
  column.bytes = static_cast<std::size_t>(column.width()) * SizeOf(column.values.dtype());
  return OkStatus();
}

// Stores the rows that the variables list.
Status RowTable::AddRows(const Shape& whole) {
  std::vector<std::size_t> column_bytes;
  if (layout_ == Layout::kRows) {
    std::transform(columns_.begin(), columns_.end(), std::back_inserter(column_bytes),
                   [](const Column& column) { return column.row_bytes(); });
  }
  shard_ = std::make_unique<Shard>(column_bytes);
  const std::vector<std::int64_t>& ids = columns_.front().variable->As<SelectedRows>().rows;
  const std::int64_t* twice = nullptr;
  Grow(static_cast<Dim>(ids.size()));
  shard_->Require(
      ids,
      [&](std::size_t i, Row row) {
        if (row.slot != i && twice == nullptr) twice = &ids[i];
      },
      [&](Row row) {
        for (std::size_t i = 0; i < columns_.size(); ++i) {
          const bool given = !columns_[i].variable->As<SelectedRows>().rows.empty();
          if (!given) columns_[i].MakeRow(row.header->id, At(i, row));
        }
      });
  if (twice != nullptr) {
    return InvalidArgument("E-server-shape", columns_.front().name, " lists row ", *twice,
                           " twice; the table is ", whole);
  }
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const SelectedRows& given = columns_[i].variable->As<SelectedRows>();
    const std::size_t bytes = columns_[i].row_bytes();
    for (std::size_t row = 0; row < given.rows.size(); ++row)
      CopyBytes(given.value.raw() + row * bytes, bytes, At(i, shard_->At(static_cast<Slot>(row))));
  }
  return OkStatus();
}

std::byte* RowTable::At(std::size_t column, Row row) const {
  if (layout_ == Layout::kRows) return row.at(shard_->offsets()[column]);
  return columns_[column].values.raw() + row.slot * columns_[column].row_bytes();
}

void RowTable::MakeRow(Row row) {
  for (std::size_t i = 0; i < columns_.size(); ++i) columns_[i].MakeRow(row.header->id, At(i, row));
}

// Raises the capacity of columns to at least `rows` positions. Stored rows are kept. The caller makes those
// that follow, up to `rows`.
void RowTable::Grow(Dim rows) {
  if (layout_ == Layout::kRows) return;
  Dim capacity = std::max(capacity_, kCapacityLeast);
  while (capacity < rows) capacity *= 2;
  if (capacity == capacity_) return;
  SetCapacity(capacity, rows);
}

// Positions from `made` on get their initial values.
void RowTable::SetCapacity(Dim capacity, Dim made) {
  const Dim kept = row_count();
  for (Column& column : columns_) {
    Column sized = column;
    sized.values = Tensor(column.values.dtype(), column.values.shape().WithRows(capacity));
    if (kept > 0)
      std::memcpy(sized.values.raw(), column.values.raw(),
                  static_cast<std::size_t>(kept) * column.row_bytes());
    for (Dim at = made; at < capacity; ++at)
      sized.MakeRow(0, sized.values.raw() + static_cast<std::size_t>(at) * column.row_bytes());
    column = std::move(sized);
  }
  capacity_ = capacity;
}

void RowTable::Require(std::span<const std::int64_t> ids) {
  std::vector<std::int64_t> missing;
  shard_->Visit(ids, [&](std::size_t i, Row row) {
    if (!row) missing.push_back(ids[i]);
  });
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  Grow(row_count() + static_cast<Dim>(missing.size()));
  shard_->Require(
      missing, [](std::size_t, Row) {}, [&](Row row) { MakeRow(row); });
  Touch(ids);
}

void RowTable::Read(std::span<const std::int64_t> ids, std::int64_t padding, std::byte* out) const {
  ReadAfter(history_.get(), ids, padding, out);
}

void RowTable::ReadLast(std::span<const std::int64_t> ids, std::int64_t padding, std::byte* out) const {
  ReadAfter(last_history_.get(), ids, padding, out);
}

void RowTable::ReadAfter(const StepHistory* steps, std::span<const std::int64_t> ids, std::int64_t padding,
                         std::byte* out) const {
  const Column& table = columns_.front();
  const std::size_t bytes = table.row_bytes();
  std::vector<std::byte> copy;
  shard_->Visit(ids, [&](std::size_t i, Row row) {
    std::byte* const to = out + i * bytes;
    if (padding != -1 && ids[i] == padding) {
      std::memset(to, 0, bytes);
    } else if (IsStored(row)) {
      CopyBytes(At(0, AfterSteps(steps, row, copy)), bytes, to);
    } else {
      table.MakeRow(ids[i], to);
    }
  });
}

}  // namespace penstock::table
