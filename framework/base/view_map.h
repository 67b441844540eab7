// Hash tables and sets that iterate in insertion order, so results do not depend on the process. The keys are
// string views, mostly names in a program; the texts must outlive the table. FlatMap and FlatSet take other
// small keys with a hash.
//
//   ViewMap<int> writes;
//   ++writes[slot.args.front()];
//   if (const auto it = writes.find("w"); it != writes.end()) ... it->second
//
// Like std::unordered_map, but without an allocation per entry and without removal. Iterators and references
// stay valid until the next insertion.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/flat_index.h"

namespace penstock {

template <typename Key, typename Value, typename Hash>
class FlatMap {
 public:
  using Entry = std::pair<Key, Value>;
  using iterator = typename std::vector<Entry>::iterator;
  using const_iterator = typename std::vector<Entry>::const_iterator;

  iterator begin() { return entries_.begin(); }
  iterator end() { return entries_.end(); }
  const_iterator begin() const { return entries_.begin(); }
  const_iterator end() const { return entries_.end(); }
  std::size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  void clear() {
    entries_.clear();
    index_.Clear();
  }
  void reserve(std::size_t count) {
    entries_.reserve(count);
    index_.Reserve(count);
  }

  const_iterator find(const Key& key) const { return begin() + Position(Hash()(key), key); }
  iterator find(const Key& key) { return begin() + Position(Hash()(key), key); }
  bool contains(const Key& key) const { return find(key) != end(); }

  // Returns the entry's iterator and whether it was inserted; an existing value is kept.
  template <typename... Args>
  std::pair<iterator, bool> try_emplace(const Key& key, Args&&... args) {
    const std::uint32_t hash = Hash()(key);
    const std::ptrdiff_t at = Position(hash, key);
    const bool fresh = at == static_cast<std::ptrdiff_t>(entries_.size());
    if (fresh) {
      index_.Add(hash, entries_.size());
      entries_.emplace_back(std::piecewise_construct, std::forward_as_tuple(key),
                            std::forward_as_tuple(std::forward<Args>(args)...));
    }
    return {begin() + at, fresh};
  }
  std::pair<iterator, bool> emplace(const Key& key, Value value) {
    return try_emplace(key, std::move(value));
  }
  Value& operator[](const Key& key) { return try_emplace(key).first->second; }

 private:
  // Returns entries_.size() if the key is absent.
  std::ptrdiff_t Position(std::uint32_t hash, const Key& key) const {
    const std::int64_t at =
        index_.Find(hash, [&](std::size_t position) { return entries_[position].first == key; });
    return at < 0 ? static_cast<std::ptrdiff_t>(entries_.size()) : static_cast<std::ptrdiff_t>(at);
  }

  std::vector<Entry> entries_;
  FlatIndex index_;
};

template <typename Key, typename Hash>
class FlatSet {
 public:
  using const_iterator = typename std::vector<Key>::const_iterator;

  FlatSet() = default;
  template <typename Iterator>
  FlatSet(Iterator begin, Iterator end) {
    insert(begin, end);
  }

  const_iterator begin() const { return keys_.begin(); }
  const_iterator end() const { return keys_.end(); }
  std::size_t size() const { return keys_.size(); }
  bool empty() const { return keys_.empty(); }
  void clear() {
    keys_.clear();
    index_.Clear();
  }
  bool contains(const Key& key) const { return Position(Hash()(key), key) >= 0; }

  // Returns the entry's iterator and whether it was inserted.
  std::pair<const_iterator, bool> insert(const Key& key) {
    const std::uint32_t hash = Hash()(key);
    const std::int64_t at = Position(hash, key);
    if (at >= 0) return {begin() + at, false};
    index_.Add(hash, keys_.size());
    keys_.push_back(key);
    return {end() - 1, true};
  }
  template <typename Iterator>
  void insert(Iterator begin, Iterator end) {
    for (; begin != end; ++begin) insert(*begin);
  }

 private:
  std::int64_t Position(std::uint32_t hash, const Key& key) const {
    return index_.Find(hash, [&](std::size_t position) { return keys_[position] == key; });
  }

  std::vector<Key> keys_;
  FlatIndex index_;
};

struct ViewHash {
  std::uint32_t operator()(std::string_view text) const { return FlatHash(text); }
};
template <typename Value>
using ViewMap = FlatMap<std::string_view, Value, ViewHash>;
using ViewSet = FlatSet<std::string_view, ViewHash>;

}  // namespace penstock
