#include "executor/pserver/memory/kept_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace penstock::pserver {

KeptRows::KeptRows(std::vector<std::int64_t> ids, const table::RowTable& table, std::size_t row_bytes)
    : ids_(std::move(ids)), row_bytes_(row_bytes) {
  std::ranges::sort(ids_);
  ids_.erase(std::unique(ids_.begin(), ids_.end()), ids_.end());
  values_.resize(ids_.size() * row_bytes_);
  table.Read(ids_, -1, values_.data());
}

void KeptRows::Add(SelectedRows rows) {
  if (rows.rows.empty()) return;
  table::SortRows(rows, {});
  std::vector<std::int64_t> ids;
  std::vector<std::byte> values;
  const auto add = [&](std::int64_t id, const std::byte* from) {
    ids.push_back(id);
    values.insert(values.end(), from, from + row_bytes_);
  };
  std::size_t own = 0;
  const auto add_own_below = [&](std::int64_t limit) {
    for (; own < ids_.size() && ids_[own] < limit; ++own) add(ids_[own], values_.data() + own * row_bytes_);
  };
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    const std::int64_t id = rows.rows[i];
    add_own_below(id);
    if (own == ids_.size() || ids_[own] != id) add(id, rows.value.raw() + i * row_bytes_);
  }
  for (; own < ids_.size(); ++own) add(ids_[own], values_.data() + own * row_bytes_);
  ids_ = std::move(ids);
  values_ = std::move(values);
}

void KeptRows::Replace(std::span<const std::int64_t> ids, std::int64_t padding, std::byte* rows) const {
  for (const std::int64_t id : ids) {
    const auto found = std::ranges::lower_bound(ids_, id);
    const bool is_padding = padding != -1 && id == padding;
    if (found != ids_.end() && *found == id && !is_padding) {
      const auto at = static_cast<std::size_t>(found - ids_.begin());
      std::memcpy(rows, values_.data() + at * row_bytes_, row_bytes_);
    }
    rows += row_bytes_;
  }
}

}  // namespace penstock::pserver
