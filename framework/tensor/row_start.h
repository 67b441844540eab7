// What the rows of a table are before anybody has changed them: a function of their number.
//
//   SetRowStart(table, std::make_shared<Zeros>());
//   if (const RowStart* start = RowStartOf(table)) start->Make(id, width, row);
//
// Selected rows that carry one stand for a table in which every row is: those that are not listed are as they
// start, and take no memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "framework/tensor/variable.h"

namespace penstock {

class RowStart {
 public:
  virtual ~RowStart() = default;
  // Writes the `width` elements, of the table's type, of a row. Thread-safe.
  virtual void Make(std::int64_t row, std::int64_t width, std::byte* out) const = 0;
};

// It is kept as the layout of the values: how those lie that are nowhere in memory. Selected rows' values
// have no other layout than this one, and lose it where they are given memory anew (Tensor::Reset).
inline void SetRowStart(SelectedRows& table, std::shared_ptr<const RowStart> start) {
  table.value.set_layout(Layout(std::move(start)));
}
inline std::shared_ptr<const RowStart> SharedRowStartOf(const SelectedRows& table) {
  return std::static_pointer_cast<const RowStart>(table.value.layout().blocked());
}
inline const RowStart* RowStartOf(const SelectedRows& table) { return SharedRowStartOf(table).get(); }

}  // namespace penstock
