#include "executor/table/row_table.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <numeric>
#include <utility>

namespace penstock::table {
namespace {

constexpr Dim kCapacityLeast = 16;

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

}  // namespace

void RowTable::Column::MakeRow(std::int64_t id, std::byte* out) const {
  if (start != nullptr) {
    start->Make(id, width(), out);
  } else {
    std::memset(out, 0, row_bytes());
  }
}

Result<RowTable> RowTable::Make(const Shape& whole, const std::vector<ColumnSource>& columns) {
  RowTable table;
  table.height_ = whole[0];
  for (const ColumnSource& source : columns) PENSTOCK_RETURN_IF_ERROR(AddColumn(whole, source, table));
  table.Grow(table.row_count());
  return table;
}

Status RowTable::AddColumn(const Shape& whole, const ColumnSource& source, RowTable& table) {
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
  if (table.columns_.empty()) {
    table.rows_ = rows->rows;
    for (const std::int64_t id : table.rows_) {
      if (table.positions_.emplace(id, static_cast<Dim>(table.positions_.size())).second) continue;
      return InvalidArgument("E-server-shape", source.name, " lists row ", id, " twice; the table is ",
                             whole);
    }
  }
  // A state that lists no rows gets the table's rows, with their initial values.
  const bool alike = rows->rows == table.rows_;
  if (!alike && !rows->rows.empty()) {
    return InvalidArgument("E-server-shape", source.name, " lists other rows than ",
                           table.columns_.front().name);
  }
  Column& column = table.columns_.emplace_back();
  column.name = source.name;
  column.variable = source.variable;
  column.start = rows->start;
  column.values = rows->value.Clone();
  if (rows->rows.empty() && column.values.shape()[0] > 0) {
    column.start = std::make_shared<GivenRows>(column.values);
    column.values = Tensor(column.values.dtype(), column.values.shape().WithRows(0));
  }
  if (alike) return OkStatus();
  column.values.Reset(rows->value.dtype(), rows->value.shape().WithRows(table.row_count()));
  for (Dim at = 0; at < table.row_count(); ++at)
    column.MakeRow(table.rows_[static_cast<std::size_t>(at)], column.At(at));
  return OkStatus();
}

// Raises the capacity to at least `rows` positions. Stored rows are kept.
void RowTable::Grow(Dim rows) {
  Dim capacity = std::max(capacity_, kCapacityLeast);
  while (capacity < rows) capacity *= 2;
  if (capacity == capacity_) return;
  const Dim kept = std::min(row_count(), columns_.front().values.shape()[0]);
  for (Column& column : columns_) {
    Column grown = column;
    grown.values = Tensor(column.values.dtype(), column.values.shape().WithRows(capacity));
    if (kept > 0)
      std::memcpy(grown.values.raw(), column.values.raw(),
                  static_cast<std::size_t>(kept) * column.row_bytes());
    for (Dim at = kept; at < capacity; ++at) grown.MakeRow(0, grown.At(at));
    column = std::move(grown);
  }
  capacity_ = capacity;
}

void RowTable::Require(std::span<const std::int64_t> ids) {
  std::vector<std::int64_t> missing;
  std::copy_if(ids.begin(), ids.end(), std::back_inserter(missing),
               [&](std::int64_t id) { return !positions_.contains(id); });
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  Grow(row_count() + static_cast<Dim>(missing.size()));
  for (const std::int64_t id : missing) {
    const Dim at = row_count();
    for (const Column& column : columns_) column.MakeRow(id, column.At(at));
    positions_.emplace(id, at);
    rows_.push_back(id);
  }
}

void RowTable::Read(std::span<const std::int64_t> ids, std::int64_t padding, std::byte* out) const {
  const Column& table = columns_.front();
  for (const std::int64_t id : ids) {
    const auto kept = positions_.find(id);
    if (padding != -1 && id == padding) {
      std::memset(out, 0, table.row_bytes());
    } else if (kept != positions_.end()) {
      std::memcpy(out, table.At(kept->second), table.row_bytes());
    } else {
      table.MakeRow(id, out);
    }
    out += table.row_bytes();
  }
}

std::vector<Dim> RowTable::Order() const {
  std::vector<Dim> order(rows_.size());
  std::iota(order.begin(), order.end(), Dim{0});
  std::sort(order.begin(), order.end(), [&](Dim a, Dim b) {
    return rows_[static_cast<std::size_t>(a)] < rows_[static_cast<std::size_t>(b)];
  });
  return order;
}

void RowTable::CopyValues(const Column& column, const std::vector<Dim>& order, std::size_t begin,
                          std::size_t end, Tensor& to) {
  std::byte* out = to.raw() + begin * column.row_bytes();
  for (std::size_t i = begin; i < end; ++i, out += column.row_bytes())
    std::memcpy(out, column.At(order[i]), column.row_bytes());
}

RowCopy RowTable::BeginCopy() const {
  const auto sized = [this](const Column& column) {
    return Tensor(column.values.dtype(), column.values.shape().WithRows(row_count()));
  };
  RowCopy copy;
  copy.order = Order();
  copy.rows.height = height_;
  copy.rows.value = sized(columns_.front());
  copy.rows.start = columns_.front().start;
  copy.rows.rows.reserve(copy.order.size());
  std::transform(columns_.begin() + 1, columns_.end(), std::back_inserter(copy.states), sized);
  return copy;
}

bool RowTable::CopyRows(RowCopy& copy, Dim rows_max) const {
  const std::size_t begin = copy.rows.rows.size();
  const std::size_t end = begin + std::min(copy.order.size() - begin, static_cast<std::size_t>(rows_max));
  for (std::size_t i = begin; i < end; ++i)
    copy.rows.rows.push_back(rows_[static_cast<std::size_t>(copy.order[i])]);
  CopyValues(columns_.front(), copy.order, begin, end, copy.rows.value);
  for (std::size_t state = 0; state < copy.states.size(); ++state)
    CopyValues(columns_[state + 1], copy.order, begin, end, copy.states[state]);
  return end == copy.order.size();
}

void RowTable::Publish() const {
  RowCopy copy = BeginCopy();
  CopyRows(copy, row_count());
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    SelectedRows published{.rows = copy.rows.rows};
    published.height = height_;
    published.value = i == 0 ? copy.rows.value : copy.states[i - 1];
    published.start = columns_[i].start;
    columns_[i].variable->As<SelectedRows>() = std::move(published);
  }
}

}  // namespace penstock::table
