// The longest common subsequence of two sequences.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace penstock::tools {

// Returns pairs of positions, ascending in both sequences. The choice among several longest subsequences is
// deterministic. Lines that occur in only one sequence are removed first; on the other n lines, of which d
// are not common, it runs the linear-space variant of Myers' algorithm (An O(ND) Difference Algorithm and Its
// Variations, 1986): O(n d) time, O(n) memory.
std::vector<std::pair<std::size_t, std::size_t>> CommonSubsequence(const std::vector<std::string>& a,
                                                                   const std::vector<std::string>& b);

}  // namespace penstock::tools
