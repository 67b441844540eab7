// A hash map keyed by pointers to objects that outlive it. Like std::unordered_map, but it does not allocate
// per entry, and has no removal and no iteration (the order of addresses differs between processes).
//
//   PointerMap<Var, std::size_t> first_writes;
//   first_writes.Emplace(var, i);                          an existing value is kept
//   if (const std::size_t* write = first_writes.Find(var)) ...
//
// A found pointer stays valid until the next insertion.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "framework/base/flat_index.h"

namespace penstock {

template <typename Object, typename Value>
class PointerMap {
 public:
  // Null if there is none.
  const Value* Find(const Object* object) const {
    const std::int64_t at = index_.Find(HashOf(object), Same{entries_, object});
    return at < 0 ? nullptr : &entries_[static_cast<std::size_t>(at)].second;
  }
  // Returns the entry's value and whether this call inserted it.
  std::pair<Value*, bool> Emplace(const Object* object, Value value) {
    const std::uint32_t hash = HashOf(object);
    const std::int64_t at = index_.Find(hash, Same{entries_, object});
    if (at >= 0) return {&entries_[static_cast<std::size_t>(at)].second, false};
    index_.Add(hash, entries_.size());
    entries_.emplace_back(object, std::move(value));
    return {&entries_.back().second, true};
  }
  void Reserve(std::size_t count) {
    entries_.reserve(count);
    index_.Reserve(count);
  }
  std::size_t size() const { return entries_.size(); }

 private:
  using Entries = std::vector<std::pair<const Object*, Value>>;
  struct Same {
    const Entries& entries;
    const Object* object;
    bool operator()(std::size_t position) const { return entries[position].first == object; }
  };
  // Objects of one size stand at equal distances, so the low bits of their addresses alone take few values.
  static std::uint32_t HashOf(const Object* object) {
    const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(object));
    return static_cast<std::uint32_t>((address * 0x9e3779b97f4a7c15u) >> 32);
  }

  Entries entries_;
  FlatIndex index_;
};

}  // namespace penstock
