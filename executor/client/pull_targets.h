// The memory into which pulls in flight write, by address: whoever reads a parameter while pulls are left in
// flight asks whether one of them writes there. Each operation takes logarithmic time; nodes are reused, so
// the steady state allocates nothing.
//
//   targets.Add(out.raw(), bytes);  targets.Overlaps(begin, end);  targets.Remove(out.raw());
//
// Not thread-safe. Entries do not overlap: two pulls never write into the same memory.
#pragma once

#include <cstddef>
#include <functional>
#include <iterator>
#include <map>
#include <memory_resource>

namespace penstock::client {

class PullTargets {
 public:
  // No effect if there are no bytes.
  void Add(const std::byte* begin, std::size_t bytes) {
    if (bytes > 0) ends_.insert_or_assign(begin, begin + bytes);
  }
  // No effect if nothing was added at `begin`.
  void Remove(const std::byte* begin) { ends_.erase(begin); }
  bool Overlaps(const std::byte* begin, const std::byte* end) const {
    const auto next = ends_.lower_bound(end);
    return next != ends_.begin() && std::less<>()(begin, std::prev(next)->second);
  }

 private:
  std::pmr::unsynchronized_pool_resource nodes_;
  std::pmr::map<const std::byte*, const std::byte*, std::less<>> ends_{&nodes_};  // by first byte
};

}  // namespace penstock::client
