// The longest common subsequence of two sequences: what stays where one is edited into the other.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace penstock::tools {

// Pairs of positions, ascending in both. Of several longest ones always the same.
// Hunt and Szymanski's method: (n + r) log n for r pairs of equal elements, which are few where lines differ.
std::vector<std::pair<std::size_t, std::size_t>> CommonSubsequence(const std::vector<std::string>& a,
                                                                   const std::vector<std::string>& b);

}  // namespace penstock::tools
