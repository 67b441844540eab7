// Tables and sets of texts that outlive them: names in a program, mostly. Walked in the order in which they
// were put in, so that what is made of them is the same in every process.
//
//   ViewMap<int> writes;
//   ++writes[slot.args.front()];
//   if (const auto it = writes.find("w"); it != writes.end()) ... it->second
//
// As std::unordered_map, but without an allocation for each, without removal, and iterators and references
// last until the next one is put in.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/flat_index.h"

namespace penstock {

template <typename Value>
class ViewMap {
 public:
  using Entry = std::pair<std::string_view, Value>;
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

  const_iterator find(std::string_view name) const { return begin() + Position(FlatHash(name), name); }
  iterator find(std::string_view name) { return begin() + Position(FlatHash(name), name); }
  bool contains(std::string_view name) const { return find(name) != end(); }

  // Where it stands, and whether it was put in now; a value that is there stays.
  template <typename... Args>
  std::pair<iterator, bool> try_emplace(std::string_view name, Args&&... args) {
    const std::uint32_t hash = FlatHash(name);
    const std::ptrdiff_t at = Position(hash, name);
    const bool fresh = at == static_cast<std::ptrdiff_t>(entries_.size());
    if (fresh) {
      index_.Add(hash, entries_.size());
      entries_.emplace_back(std::piecewise_construct, std::forward_as_tuple(name),
                            std::forward_as_tuple(std::forward<Args>(args)...));
    }
    return {begin() + at, fresh};
  }
  std::pair<iterator, bool> emplace(std::string_view name, Value value) {
    return try_emplace(name, std::move(value));
  }
  Value& operator[](std::string_view name) { return try_emplace(name).first->second; }

 private:
  // entries_.size() if it is not there.
  std::ptrdiff_t Position(std::uint32_t hash, std::string_view name) const {
    const std::int64_t at =
        index_.Find(hash, [&](std::size_t position) { return entries_[position].first == name; });
    return at < 0 ? static_cast<std::ptrdiff_t>(entries_.size()) : static_cast<std::ptrdiff_t>(at);
  }

  std::vector<Entry> entries_;
  FlatIndex index_;
};

class ViewSet {
 public:
  using const_iterator = std::vector<std::string_view>::const_iterator;

  ViewSet() = default;
  template <typename Iterator>
  ViewSet(Iterator begin, Iterator end) {
    insert(begin, end);
  }

  const_iterator begin() const { return names_.begin(); }
  const_iterator end() const { return names_.end(); }
  std::size_t size() const { return names_.size(); }
  bool empty() const { return names_.empty(); }
  bool contains(std::string_view name) const { return Position(FlatHash(name), name) >= 0; }

  // Where it stands, and whether it was put in now.
  std::pair<const_iterator, bool> insert(std::string_view name) {
    const std::uint32_t hash = FlatHash(name);
    const std::int64_t at = Position(hash, name);
    if (at >= 0) return {begin() + at, false};
    index_.Add(hash, names_.size());
    names_.push_back(name);
    return {end() - 1, true};
  }
  template <typename Iterator>
  void insert(Iterator begin, Iterator end) {
    for (; begin != end; ++begin) insert(*begin);
  }

 private:
  std::int64_t Position(std::uint32_t hash, std::string_view name) const {
    return index_.Find(hash, [&](std::size_t position) { return names_[position] == name; });
  }

  std::vector<std::string_view> names_;
  FlatIndex index_;
};

}  // namespace penstock
