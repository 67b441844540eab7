// The initial values of a table's rows, as a function of the row number.
//
//   table.start = std::make_shared<Zeros>();
//   if (table.start != nullptr) table.start->Make(id, width, row);
//
// Selected rows with a RowStart stand for a table that has every row: rows that are not listed have their
// initial value and take no memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

class RowStart {
 public:
  virtual ~RowStart() = default;
  // Writes the `width` elements, of the table's type, of one row. Thread-safe.
  virtual void Make(std::int64_t row, std::int64_t width, std::byte* out) const = 0;
};

}  // namespace penstock
