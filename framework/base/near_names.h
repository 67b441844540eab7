// Suggestions for a misspelt name.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace penstock {

// The number of single-character edits (insert, delete, replace) that turn a into b.
std::size_t EditDistance(std::string_view a, std::string_view b);

// Returns up to five of `names` within two edits of `wanted`, in the order of `names`.
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
