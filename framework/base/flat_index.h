// Where things stand in a list, by the hash of what they are looked up by. It holds hashes and positions
// alone, in one array: no allocation for each, and a copy of it is one copy of that array. What is looked up
// is compared where it stands, by the caller.
//
//   FlatIndex index;
//   index.Add(HashOf(name), names.size());
//   names.push_back(name);
//   index.Find(HashOf(name), [&](std::size_t at) { return names[at] == name; })     0
//
// Safe for concurrent readers. All costs are O(1) expected.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace penstock {

class FlatIndex {
 public:
  static constexpr std::int64_t kAbsent = -1;

  // The position of which `same(position)` holds; kAbsent if none.
  template <typename Same>
  std::int64_t Find(std::uint32_t hash, const Same& same) const {
    if (used_ == 0) return kAbsent;
    return static_cast<std::int64_t>(table_[Seek(hash, same)].place) - 1;
  }
  // Of a search that is about to be made: asks the memory for where it begins. Then, once that is there: the
  // position that it most probably ends with.
  void Prefetch(std::uint32_t hash) const {
    if (used_ != 0) __builtin_prefetch(&table_[hash & mask()]);
  }
  std::int64_t Guess(std::uint32_t hash) const {
    return Find(hash, [](std::size_t) { return true; });
  }
  // Something that is not there yet, and where it stands or is about to.
  void Add(std::uint32_t hash, std::size_t position);
  // Forgets one; the others stay where they are.
  template <typename Same>
  void Remove(std::uint32_t hash, const Same& same) {
    if (used_ == 0) return;
    const std::size_t at = Seek(hash, same);
    if (table_[at].place != 0) Free(at);
  }
  void Clear();
  void Reserve(std::size_t count);  // as many can be added without moving what is there
  std::size_t size() const { return used_; }

 private:
  struct Entry {
    std::uint32_t hash = 0;
    std::uint32_t place = 0;  // the position and one more; 0: free
  };
  // Where the entry is, or the free one that ends the search for it. There always is one.
  template <typename Same>
  std::size_t Seek(std::uint32_t hash, const Same& same) const {
    std::size_t at = hash & mask();
    for (; table_[at].place != 0; at = (at + 1) & mask()) {
      if (table_[at].hash == hash && same(static_cast<std::size_t>(table_[at].place - 1))) break;
    }
    return at;
  }
  void Place(Entry entry);
  void Free(std::size_t at);
  void Resize(std::size_t entries);  // a power of two
  std::size_t mask() const { return table_.size() - 1; }

  std::vector<Entry> table_;  // an entry stands at its hash, or behind it if that is taken
  std::size_t used_ = 0;
};

inline std::uint32_t FlatHash(std::string_view text) {
  const std::uint64_t hash = std::hash<std::string_view>()(text);
  return static_cast<std::uint32_t>(hash ^ (hash >> 32));
}

}  // namespace penstock
