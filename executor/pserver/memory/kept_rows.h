// Rows of a table as they were before an update, for a trainer that repeats the step of that version.
//
//   KeptRows kept(ids, table, row_bytes);          // before the update
//   kept.Replace(ids, padding, rows);              // rows read after it become those of the version before
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "executor/table/row_table.h"

namespace penstock::pserver {

class KeptRows {
 public:
  // `ids`: in any order, and repeated.
  KeptRows(std::vector<std::int64_t> ids, const table::RowTable& table, std::size_t row_bytes);

  // Adds those of `rows` whose ids it does not have.
  void Add(SelectedRows rows);

  // Overwrites the rows of the kept ids. `rows` has the row of each id, as RowTable::Read writes them.
  void Replace(std::span<const std::int64_t> ids, std::int64_t padding, std::byte* rows) const;

 private:
  std::vector<std::int64_t> ids_;  // ascending
  std::size_t row_bytes_;
  std::vector<std::byte> values_;
};

}  // namespace penstock::pserver
