// Where each variable stands in a block's list, by name. The names themselves are looked up in the variables,
// so the index is one array of numbers: a copy of it costs what copying the array costs.
//
//   index.Add("w", vars.size());
//   vars.push_back(w);
//   index.Find("w", vars)     0
//
// Safe for concurrent readers.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "framework/ir/var.h"

namespace penstock {

class NameIndex {
 public:
  static constexpr std::int64_t kAbsent = -1;

  // `vars` is the list that is indexed. Cost O(1) expected, as of Add and Remove.
  std::int64_t Find(std::string_view name, const std::vector<VarRef>& vars) const;
  // A name that is not there yet, and where its variable stands or is about to.
  void Add(std::string_view name, std::size_t position);
  // Forgets a name; the others stay where they are.
  void Remove(std::string_view name, const std::vector<VarRef>& vars);
  // Anew, of a list in which positions have moved.
  void Assign(const std::vector<VarRef>& vars);

 private:
  struct Entry {
    std::uint32_t hash = 0;
    std::uint32_t place = 0;  // the position and one more; 0: free
  };
  // Where the name's entry is, or the free one that ends the search for it. There always is one.
  std::size_t Seek(std::uint32_t hash, std::string_view name, const std::vector<VarRef>& vars) const;
  void Place(Entry entry);
  void Resize(std::size_t entries);  // a power of two
  std::size_t mask() const { return table_.size() - 1; }

  std::vector<Entry> table_;  // an entry stands at its hash, or behind it if that is taken
  std::size_t used_ = 0;
};

}  // namespace penstock
