#include "executor/table/row_copy.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace penstock::table {
namespace {

// Row i of the result is row order[i] of `rows`.
Tensor InOrder(const Tensor& rows, std::span<const std::uint32_t> order) {
  Tensor sorted(rows.dtype(), rows.shape().WithRows(static_cast<Dim>(order.size())));
  const std::size_t bytes = static_cast<std::size_t>(rows.shape().RowWidth()) * SizeOf(rows.dtype());
  std::byte* to = sorted.raw();
  for (const std::uint32_t row : order) {
    std::memcpy(to, rows.raw() + row * bytes, bytes);
    to += bytes;
  }
  return sorted;
}

}  // namespace

void SortRows(SelectedRows& rows, std::span<Tensor* const> states) {
  const auto count = static_cast<Dim>(rows.rows.size());
  std::vector<Tensor*> tensors = {&rows.value};
  tensors.insert(tensors.end(), states.begin(), states.end());
  if (std::ranges::is_sorted(rows.rows)) {
    for (Tensor* const tensor : tensors) {
      if (tensor->shape()[0] != count) *tensor = tensor->Rows(0, count).Clone();
    }
    return;
  }
  std::vector<std::pair<std::int64_t, std::uint32_t>> by_id;
  by_id.reserve(rows.rows.size());
  for (const std::int64_t id : rows.rows) by_id.emplace_back(id, static_cast<std::uint32_t>(by_id.size()));
  std::ranges::sort(by_id);
  std::vector<std::uint32_t> order;
  order.reserve(by_id.size());
  for (std::size_t i = 0; i < by_id.size(); ++i) {
    rows.rows[i] = by_id[i].first;
    order.push_back(by_id[i].second);
  }
  for (Tensor* const tensor : tensors) *tensor = InOrder(*tensor, order);
}

std::vector<Tensor*> RowCopy::Columns() {
  std::vector<Tensor*> columns = {&rows.value};
  for (Tensor& state : states) columns.push_back(&state);
  if (versions.initialized()) columns.push_back(&versions);
  if (life.initialized()) columns.push_back(&life);
  return columns;
}

void RowCopy::MakeRoom() {
  const auto count = static_cast<Dim>(rows.rows.size()), room = std::max(portion, 2 * count);
  rows.rows.reserve(static_cast<std::size_t>(room));
  for (Tensor* const column : Columns()) {
    Tensor larger(column->dtype(), column->shape().WithRows(room));
    if (count > 0) std::memcpy(larger.raw(), column->raw(), column->bytes());
    *column = std::move(larger);
  }
}

LifeCopy RowCopy::TakeLife() {
  LifeCopy taken = std::exchange(candidates, std::nullopt).value_or(LifeCopy());
  SelectedRows& headers = taken.headers;
  const std::size_t before = headers.rows.empty() ? 0 : headers.value.bytes(), count = rows.rows.size();
  const std::size_t bytes = count * static_cast<std::size_t>(LifeCopy::kFields) * sizeof(std::int64_t);
  Tensor both(DType::kInt64, {static_cast<Dim>(headers.rows.size() + count), LifeCopy::kFields});
  if (before > 0) std::memcpy(both.raw(), headers.value.raw(), before);
  if (bytes > 0) std::memcpy(both.raw() + before, life.raw(), bytes);
  headers.rows.insert(headers.rows.end(), rows.rows.begin(), rows.rows.end());
  headers.value = std::move(both);
  return taken;
}

void RowCopy::Sort() {
  std::vector<Tensor*> columns = Columns();
  columns.erase(columns.begin());
  SortRows(rows, columns);
}

RowCopy RowCopy::TakeRows() {
  std::vector<bool> kept = std::exchange(ahead, {});
  std::vector<ColdPart> parts = std::exchange(cold, {});
  RowCopy taken = *this;  // shares the tensors
  ahead = std::move(kept);
  cold = std::move(parts);
  const auto count = static_cast<Dim>(rows.rows.size());
  for (Tensor* const column : taken.Columns()) *column = column->Rows(0, count);
  for (Tensor* const column : Columns()) *column = Tensor(column->dtype(), column->shape().WithRows(0));
  rows.rows.clear();
  gone.clear();
  history = Tensor();
  candidates.reset();
  return taken;
}

}  // namespace penstock::table
