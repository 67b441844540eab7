#include "executor/kvstore/merge_rows.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include "executor/kvstore/cast.h"

namespace penstock::kvstore {
namespace {

struct ListedRow {
  std::int64_t row = 0;
  const std::byte* values = nullptr;
};
bool Before(const ListedRow& a, const ListedRow& b) { return a.row < b.row; }

// The rows of all devices in ascending order; those of one row in the order of devices and places. Devices
// usually list their rows in order, so that merging their lists is enough.
std::vector<ListedRow> ListRows(std::span<const SelectedRows> values, std::span<const Tensor> kept) {
  std::vector<ListedRow> all;
  std::size_t total = 0;
  for (const SelectedRows& value : values) total += value.rows.size();
  all.reserve(total);
  for (std::size_t device = 0; device < values.size(); ++device) {
    const std::vector<std::int64_t>& rows = values[device].rows;
    if (rows.empty()) continue;
    const auto done = static_cast<std::ptrdiff_t>(all.size());
    const std::size_t row_bytes = kept[device].bytes() / rows.size();
    const std::byte* next = kept[device].raw();
    for (const std::int64_t row : rows) {
      all.push_back({row, next});
      next += row_bytes;
    }
    if (!std::is_sorted(all.begin() + done, all.end(), Before))
      std::stable_sort(all.begin() + done, all.end(), Before);
    std::inplace_merge(all.begin(), all.begin() + done, all.end(), Before);
  }
  return all;
}

// `all` has ascending rows; `out` has a row for each different one.
void AddRows(std::span<const ListedRow> all, Tensor& out) {
  const auto width = static_cast<std::size_t>(out.shape().RowWidth());
  const std::size_t bytes = width * SizeOf(out.dtype());
  std::byte* to = out.raw();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i > 0 && all[i].row == all[i - 1].row) {
      AddElements(out.dtype(), all[i].values, to - bytes, width);
    } else {
      std::memcpy(to, all[i].values, bytes);
      to += bytes;
    }
  }
}

bool IsAscending(std::span<const std::int64_t> rows) {
  return std::adjacent_find(rows.begin(), rows.end(), std::greater_equal<>()) == rows.end();
}

}  // namespace

SelectedRows MergedRows(std::span<const SelectedRows> values, DType type) {
  if (values.size() == 1 && values[0].value.dtype() == type && IsAscending(values[0].rows))
    return {.rows = values[0].rows, .height = values[0].height, .value = values[0].value};
  std::vector<Tensor> kept;
  for (const SelectedRows& value : values) {
    kept.push_back(value.value);
    if (value.rows.empty() || value.value.dtype() == type) continue;
    kept.back() = Tensor(type, value.value.shape());
    CastInto(value.value, kept.back());
  }
  const std::vector<ListedRow> all = ListRows(values, kept);
  SelectedRows merged;
  merged.height = values.front().height;
  merged.rows.reserve(all.size());
  for (const ListedRow& one : all) {
    if (merged.rows.empty() || merged.rows.back() != one.row) merged.rows.push_back(one.row);
  }
  merged.value = Tensor(type, values.front().value.shape().WithRows(static_cast<Dim>(merged.rows.size())));
  AddRows(all, merged.value);
  return merged;
}

}  // namespace penstock::kvstore
