// A set of steps, most of which follow each other.
//
//   StepSet steps({0, 4});                 // 0 1 2 3
//   steps.Add(4);  steps.Add(4);           // true, false: it is there
//   steps.Add(7);
//   steps.ranges();                        // {0, 5, 7, 8}: begin, end, begin, end
//   steps.first_gap();                     // 5
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

namespace penstock::pserver {

class StepSet {
 public:
  StepSet() = default;
  // From ranges(); what is no range is left out.
  explicit StepSet(const std::vector<std::uint64_t>& ranges) {
    for (std::size_t i = 0; i + 1 < ranges.size(); i += 2)
      if (ranges[i] < ranges[i + 1]) ends_[ranges[i]] = ranges[i + 1];
  }

  bool Contains(std::uint64_t step) const {
    const auto after = ends_.upper_bound(step);
    return after != ends_.begin() && step < std::prev(after)->second;
  }
  // Returns false if it is there.
  bool Add(std::uint64_t step) {
    if (Contains(step)) return false;
    auto after = ends_.upper_bound(step);
    std::uint64_t end = step + 1;
    if (after != ends_.end() && after->first == end) {
      end = after->second;
      after = ends_.erase(after);
    }
    if (after != ends_.begin() && std::prev(after)->second == step) {
      std::prev(after)->second = end;
    } else {
      ends_[step] = end;
    }
    return true;
  }
  // The first step that is missing. A trainer may count its first step as the second.
  std::uint64_t first_gap() const {
    return ends_.empty() || ends_.begin()->first > 1 ? 0 : ends_.begin()->second;
  }
  std::vector<std::uint64_t> ranges() const {
    std::vector<std::uint64_t> ranges;
    for (const auto& [begin, end] : ends_) ranges.insert(ranges.end(), {begin, end});
    return ranges;
  }
  // The same steps, so many earlier; those before 0 are left out.
  StepSet Earlier(std::uint64_t by) const {
    StepSet moved;
    for (const auto& [begin, end] : ends_)
      if (end > by) moved.ends_[begin > by ? begin - by : 0] = end - by;
    return moved;
  }
  // The same steps, so many later, and all that are earlier.
  StepSet Later(std::uint64_t by) const {
    StepSet moved;
    if (by > 0) moved.ends_[0] = by;
    for (const auto& [begin, end] : ends_) moved.ends_[by > 0 && begin == 0 ? 0 : begin + by] = end + by;
    return moved;
  }

 private:
  std::map<std::uint64_t, std::uint64_t> ends_;  // of ranges, by their begin
};

}  // namespace penstock::pserver
