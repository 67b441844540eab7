// Maps variable names to positions in a block's list. Names are compared in the variables themselves, so a
// copy of the index copies one array.
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
  // Returns the position in `vars`, the list that is indexed; negative if absent.
  std::int64_t Find(std::string_view name, const std::vector<VarRef>& vars) const {
    return index_.Find(FlatHash(name), Same{name, vars});
  }
  // Looks up many names. Each search touches four distant places in memory; several searches run side by
  // side, so that their memory latencies overlap.
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
  // Adds a name that is not there yet; `position` is where its variable stands or will be put.
  void Add(std::string_view name, std::size_t position) { index_.Add(FlatHash(name), position); }
  void Reserve(std::size_t count) { index_.Reserve(count); }
  // Removes a name; the positions of the others do not change.
  void Remove(std::string_view name, const std::vector<VarRef>& vars) {
    index_.Remove(FlatHash(name), Same{name, vars});
  }
  // Rebuilds the index of a list in which positions have changed.
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
