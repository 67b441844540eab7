// The longest common subsequence of two sequences: what stays where one is edited into the other.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace penstock::tools {

// Pairs of positions, ascending in both. Of several longest ones always the same.
// Lines that stand in one sequence alone are left out first. Of the others (n of them, d that do not stay)
// Myers' method in its linear form (An O(ND) difference algorithm and its variations, 1986): time n d, memory
// n.
std::vector<std::pair<std::size_t, std::size_t>> CommonSubsequence(const std::vector<std::string>& a,
                                                                   const std::vector<std::string>& b);

}  // namespace penstock::tools
