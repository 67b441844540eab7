// Rows of a table that come from several places.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "framework/tensor/variable.h"

namespace penstock::checkpoint {

// The rows of all, at least one, by ascending id; of equal ids both are there.
SelectedRows MergeRows(const std::vector<SelectedRows>& from);

// The rows of a table that several steps have saved, each in portions, from the first step on.
//
//   SavedRows saved;
//   saved.Add(0, rows);  saved.Add(0, more);                 // of the first step
//   saved.Add(1, changes);  saved.Remove(1, gone);           // of the next: ids that it has no changes of
//   saved.Take();                                            // by ascending id
class SavedRows {
 public:
  void Add(std::size_t step, SelectedRows rows);
  void Remove(std::size_t step, std::span<const std::int64_t> ids);
  // nullopt: a step has an id twice, or portions have rows of different types.
  std::optional<SelectedRows> Take();

 private:
  struct At {
    std::int64_t id;
    std::uint32_t step;
    std::uint32_t portion;  // kGone: none
    std::uint64_t row;
  };
  static constexpr std::uint32_t kGone = ~std::uint32_t{0};
  std::vector<SelectedRows> portions_;
  std::vector<At> order_;
};

}  // namespace penstock::checkpoint
