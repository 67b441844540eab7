// The numbers by which errors and reports name the ranks of a group that is a part of a larger one.
//
//   const RankNames names{{2, 3}};    // rank 1 of this group is rank 3 of the larger one
//   StrCat("rank ", names(1), " is gone");
#pragma once

#include <span>
#include <vector>

namespace penstock::collective {

struct RankNames {
  std::vector<int> of_ranks;  // empty: the group's own numbers

  // A number that is no rank of the group, as another process may have sent it, stays as it is.
  int operator()(int rank) const {
    const auto index = static_cast<std::size_t>(rank);
    return index < of_ranks.size() ? of_ranks[index] : rank;
  }
  std::vector<int> operator()(std::span<const int> ranks) const {
    std::vector<int> names;
    for (const int rank : ranks) names.push_back((*this)(rank));
    return names;
  }
};

}  // namespace penstock::collective
