// A hash index of a list: maps a key's hash to positions in a list that the caller keeps. The index stores
// hashes and positions in one array, so adding does not allocate per entry and a copy copies one array. The
// caller compares keys in its own list.
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

  // Returns the position for which `same(position)` is true; kAbsent if there is none.
  template <typename Same>
  std::int64_t Find(std::uint32_t hash, const Same& same) const {
    if (used_ == 0) return kAbsent;
    return static_cast<std::int64_t>(table_[Seek(hash, same)].place) - 1;
  }
  // Prefetch loads the slot where a search for `hash` begins. Guess, called once that slot is loaded, returns
  // the position that the search will most probably find.
  void Prefetch(std::uint32_t hash) const {
    if (used_ != 0) __builtin_prefetch(&table_[hash & mask()]);
  }
  std::int64_t Guess(std::uint32_t hash) const {
    return Find(hash, [](std::size_t) { return true; });
  }
  // Adds an entry that is not there yet. `position` is where the element stands or will be put.
  void Add(std::uint32_t hash, std::size_t position);
  // Removes one entry; the positions of the others do not change.
  template <typename Same>
  void Remove(std::uint32_t hash, const Same& same) {
    if (used_ == 0) return;
    const std::size_t at = Seek(hash, same);
    if (table_[at].place != 0) Free(at);
  }
  void Clear();
  void Reserve(std::size_t count);  // room for `count` entries without rehashing
  std::size_t size() const { return used_; }

 private:
  struct Entry {
    std::uint32_t hash = 0;
    std::uint32_t place = 0;  // position + 1; 0: free
  };
  // The slot of the entry, or the free slot that ends the search. There is always a free slot.
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

  std::vector<Entry> table_;  // linear probing: an entry is in its hash's slot or in a later one
  std::size_t used_ = 0;
};

inline std::uint32_t FlatHash(std::string_view text) {
  const std::uint64_t hash = std::hash<std::string_view>()(text);
  return static_cast<std::uint32_t>(hash ^ (hash >> 32));
}

}  // namespace penstock
