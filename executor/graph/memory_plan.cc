#include "executor/graph/memory_plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>

namespace penstock::exec {
namespace {

constexpr std::size_t kPlaceAlignment = 64;

// Free gaps below the arena's end, by offset; neighbours are always merged.
class Gaps {
 public:
  std::size_t Take(std::size_t bytes) {
    auto best = gaps_.end();
    for (auto it = gaps_.begin(); it != gaps_.end(); ++it) {
      if (it->second >= bytes && (best == gaps_.end() || it->second < best->second)) best = it;
    }
    if (best != gaps_.end()) {
      const auto [offset, size] = *best;
      gaps_.erase(best);
      if (size > bytes) gaps_.emplace(offset + bytes, size - bytes);
      return offset;
    }
    // The arena must grow: extends a gap at its end, if there is one.
    if (!gaps_.empty()) {
      const auto last = std::prev(gaps_.end());
      if (last->first + last->second == end_) {
        const std::size_t offset = last->first;
        gaps_.erase(last);
        end_ = offset + bytes;
        return offset;
      }
    }
    const std::size_t offset = end_;
    end_ += bytes;
    return offset;
  }

  void Give(std::size_t offset, std::size_t bytes) {
    auto next = gaps_.lower_bound(offset);
    if (next != gaps_.end() && next->first == offset + bytes) {
      bytes += next->second;
      next = gaps_.erase(next);
    }
    if (next != gaps_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == offset) {
        before->second += bytes;
        return;
      }
    }
    gaps_.emplace(offset, bytes);
  }

  std::size_t end() const { return end_; }

 private:
  std::map<std::size_t, std::size_t> gaps_;
  std::size_t end_ = 0;
};

}  // namespace

std::size_t BytesInArena(std::size_t bytes) {
  return (bytes + kPlaceAlignment - 1) / kPlaceAlignment * kPlaceAlignment;
}

MemoryPlan PlanMemory(const std::vector<Lifetime>& lifetimes) {
  MemoryPlan plan;
  plan.offsets.resize(lifetimes.size());
  std::vector<std::size_t> by_first(lifetimes.size());
  std::iota(by_first.begin(), by_first.end(), std::size_t{0});
  std::vector<std::size_t> by_last = by_first;
  std::stable_sort(by_first.begin(), by_first.end(),
                   [&](std::size_t a, std::size_t b) { return lifetimes[a].first < lifetimes[b].first; });
  std::stable_sort(by_last.begin(), by_last.end(),
                   [&](std::size_t a, std::size_t b) { return lifetimes[a].last < lifetimes[b].last; });

  const auto rounded = [&](std::size_t i) { return BytesInArena(lifetimes[i].bytes); };
  Gaps gaps;
  std::size_t ended = 0;
  for (const std::size_t i : by_first) {
    for (; ended < by_last.size() && lifetimes[by_last[ended]].last < lifetimes[i].first; ++ended) {
      const std::size_t done = by_last[ended];
      if (rounded(done) > 0) gaps.Give(plan.offsets[done], rounded(done));
    }
    if (rounded(i) > 0) plan.offsets[i] = gaps.Take(rounded(i));
  }
  plan.arena_bytes = gaps.end();
  return plan;
}

}  // namespace penstock::exec
