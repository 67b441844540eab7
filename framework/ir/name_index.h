// Where each variable stands in a block's list, by name. The names themselves are looked up in the variables,
// so a copy of the index is one copy of an array.
//
//   index.Add("w", vars.size());
//   vars.push_back(w);
//   index.Find("w", vars)     0
//
// Safe for concurrent readers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "framework/base/flat_index.h"
#include "framework/ir/var.h"

namespace penstock {

class NameIndex {
 public:
  // `vars` is the list that is indexed. The position in it; negative if there is none.
  std::int64_t Find(std::string_view name, const std::vector<VarRef>& vars) const {
    return index_.Find(FlatHash(name), Same{name, vars});
  }
  // The same of many names. Each search reads four places that are far from each other; a few go side by
  // side, so that the memory is waited for once and not for each.
  void FindAll(std::span<const std::string_view> names, const std::vector<VarRef>& vars,
               std::span<std::int64_t> positions) const {
    constexpr std::size_t kSideBySide = 16;
    std::uint32_t hashes[kSideBySide];
    for (std::size_t begin = 0; begin < names.size(); begin += kSideBySide) {
      const std::size_t count = std::min(kSideBySide, names.size() - begin);
      const auto of = names.subspan(begin, count);
      const auto at = positions.subspan(begin, count);
      for (std::size_t i = 0; i < count; ++i) index_.Prefetch(hashes[i] = FlatHash(of[i]));
      for (std::size_t i = 0; i < count; ++i) {
        at[i] = index_.Guess(hashes[i]);
        if (at[i] >= 0) __builtin_prefetch(&vars[static_cast<std::size_t>(at[i])]);
      }
      for (std::size_t i = 0; i < count; ++i) {
        if (at[i] >= 0) __builtin_prefetch(vars[static_cast<std::size_t>(at[i])].get());
      }
      for (std::size_t i = 0; i < count; ++i) {
        if (at[i] >= 0) __builtin_prefetch(vars[static_cast<std::size_t>(at[i])]->name.data());
      }
      for (std::size_t i = 0; i < count; ++i) {
        if (at[i] >= 0) at[i] = index_.Find(hashes[i], Same{of[i], vars});
      }
    }
  }
  // A name that is not there yet, and where its variable stands or is about to.
  void Add(std::string_view name, std::size_t position) { index_.Add(FlatHash(name), position); }
  void Reserve(std::size_t count) { index_.Reserve(count); }
  // Forgets a name; the others stay where they are.
  void Remove(std::string_view name, const std::vector<VarRef>& vars) {
    index_.Remove(FlatHash(name), Same{name, vars});
  }
  // Anew, of a list in which positions have moved.
  void Assign(const std::vector<VarRef>& vars) {
    index_.Clear();
    index_.Reserve(vars.size());
    for (std::size_t i = 0; i < vars.size(); ++i) Add(vars[i]->name, i);
  }

 private:
  struct Same {
    std::string_view name;
    const std::vector<VarRef>& vars;
    bool operator()(std::size_t at) const { return vars[at]->name == name; }
  };
  FlatIndex index_;
};

}  // namespace penstock
