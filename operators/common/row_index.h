// Finds the position of a row in a table that is stored as selected rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "framework/tensor/variable.h"

namespace penstock {

// Reuses its memory. While the table lists the same rows, Update only compares them, in linear time.
class RowIndex {
 public:
  void Update(const std::vector<std::int64_t>& rows) {
    if (rows == rows_) return;
    rows_ = rows;
    order_.clear();
    for (std::size_t i = 0; i < rows.size(); ++i) order_.emplace_back(rows[i], static_cast<Dim>(i));
    std::sort(order_.begin(), order_.end());
  }
  // Returns the position of a row in the table, the first if the row occurs more than once, or -1.
  // Logarithmic time.
  Dim Find(std::int64_t row) const {
    const auto at = std::lower_bound(order_.begin(), order_.end(), std::pair<std::int64_t, Dim>(row, 0));
    return at != order_.end() && at->first == row ? at->second : -1;
  }

 private:
  std::vector<std::int64_t> rows_;
  std::vector<std::pair<std::int64_t, Dim>> order_;
};

}  // namespace penstock
