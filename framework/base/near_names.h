// Names that somebody who wrote a wrong one may have meant.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace penstock {

// Edits of one character (insert, drop, replace) that lead from a to b.
std::size_t EditDistance(std::string_view a, std::string_view b);

// Those of `names` that are at most two edits away from `wanted`, in their order, at most five.
template <typename Names>
std::vector<std::string_view> NearNames(std::string_view wanted, const Names& names) {
  constexpr std::size_t kEditsMax = 2, kNamesMax = 5;
  std::vector<std::string_view> near;
  for (const std::string_view name : names) {
    if (near.size() < kNamesMax && EditDistance(name, wanted) <= kEditsMax) near.push_back(name);
  }
  return near;
}

}  // namespace penstock
