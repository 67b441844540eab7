#include "tools/diff/common_subsequence.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace penstock::tools {
namespace {

using Pair = std::pair<std::size_t, std::size_t>;

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

// The end of a common subsequence, and the link that comes before it.
struct Link {
  Pair at;
  std::size_t before = kNone;
};

}  // namespace

std::vector<Pair> CommonSubsequence(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::size_t head = 0, tail = 0;
  const std::size_t shorter = std::min(a.size(), b.size());
  while (head < shorter && a[head] == b[head]) ++head;
  while (tail < shorter - head && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;
  std::unordered_map<std::string_view, std::vector<std::size_t>> places;  // in b, from the last to the first
  for (std::size_t j = b.size() - tail; j-- > head;) places[b[j]].push_back(j);
  // ends[n] is the link of the subsequence of n + 1 pairs that ends first in b.
  std::vector<Link> links;
  std::vector<std::size_t> ends;
  for (std::size_t i = head; i < a.size() - tail; ++i) {
    const auto there = places.find(a[i]);
    if (there == places.end()) continue;
    for (const std::size_t j : there->second) {
      const auto end = std::lower_bound(ends.begin(), ends.end(), j, [&](std::size_t link, std::size_t at) {
        return links[link].at.second < at;
      });
      if (end != ends.end() && links[*end].at.second == j) continue;
      links.push_back({{i, j}, end == ends.begin() ? kNone : *(end - 1)});
      if (end == ends.end()) {
        ends.push_back(links.size() - 1);
      } else {
        *end = links.size() - 1;
      }
    }
  }
  std::vector<Pair> middle;
  for (std::size_t at = ends.empty() ? kNone : ends.back(); at != kNone; at = links[at].before) {
    middle.push_back(links[at].at);
  }
  std::vector<Pair> all;
  for (std::size_t i = 0; i < head; ++i) all.emplace_back(i, i);
  all.insert(all.end(), middle.rbegin(), middle.rend());
  for (std::size_t i = tail; i > 0; --i) all.emplace_back(a.size() - i, b.size() - i);
  return all;
}

}  // namespace penstock::tools
