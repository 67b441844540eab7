// What the rows of a table are before anybody has changed them: a function of their number.
//
//   table.start = std::make_shared<Zeros>();
//   if (table.start != nullptr) table.start->Make(id, width, row);
//
// Selected rows that carry one stand for a table in which every row is: those that are not listed are as they
// start, and take no memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

class RowStart {
 public:
  virtual ~RowStart() = default;
  // Writes the `width` elements, of the table's type, of a row. Thread-safe.
  virtual void Make(std::int64_t row, std::int64_t width, std::byte* out) const = 0;
};

}  // namespace penstock
