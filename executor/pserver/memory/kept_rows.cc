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
