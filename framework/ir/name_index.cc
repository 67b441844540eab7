#include "framework/ir/name_index.h"

#include <functional>
#include <limits>

#include "framework/base/check.h"

namespace penstock {
namespace {

constexpr std::size_t kFirstEntries = 16;

std::uint32_t HashOf(std::string_view name) {
  const std::uint64_t hash = std::hash<std::string_view>()(name);
  return static_cast<std::uint32_t>(hash ^ (hash >> 32));
}

}  // namespace

std::size_t NameIndex::Seek(std::uint32_t hash, std::string_view name,
                            const std::vector<VarRef>& vars) const {
  std::size_t at = hash & mask();
  for (; table_[at].place != 0; at = (at + 1) & mask()) {
    if (table_[at].hash == hash && vars[table_[at].place - 1]->name == name) break;
  }
  return at;
}

std::int64_t NameIndex::Find(std::string_view name, const std::vector<VarRef>& vars) const {
  if (used_ == 0) return kAbsent;
  return static_cast<std::int64_t>(table_[Seek(HashOf(name), name, vars)].place) - 1;
}

void NameIndex::Place(Entry entry) {
  std::size_t at = entry.hash & mask();
  while (table_[at].place != 0) at = (at + 1) & mask();
  table_[at] = entry;
}

void NameIndex::Resize(std::size_t entries) {
  std::vector<Entry> before(entries);
  before.swap(table_);
  for (const Entry& entry : before) {
    if (entry.place != 0) Place(entry);
  }
}

void NameIndex::Add(std::string_view name, std::size_t position) {
  PENSTOCK_CHECK(position < std::numeric_limits<std::uint32_t>::max(), "too many variables in a block");
  // At least half of the entries are free: a search is short.
  if (2 * (used_ + 1) > table_.size()) Resize(table_.empty() ? kFirstEntries : 2 * table_.size());
  Place({HashOf(name), static_cast<std::uint32_t>(position) + 1});
  ++used_;
}

void NameIndex::Remove(std::string_view name, const std::vector<VarRef>& vars) {
  if (used_ == 0) return;
  std::size_t gap = Seek(HashOf(name), name, vars);
  if (table_[gap].place == 0) return;
  table_[gap] = {};
  --used_;
  // What stands behind may have been pushed there: it is placed again, so that no search ends at the gap.
  for (std::size_t at = (gap + 1) & mask(); table_[at].place != 0; at = (at + 1) & mask()) {
    const Entry entry = table_[at];
    table_[at] = {};
    Place(entry);
  }
}

void NameIndex::Assign(const std::vector<VarRef>& vars) {
  table_.clear();
  used_ = 0;
  std::size_t entries = kFirstEntries;
  while (entries < 2 * vars.size()) entries *= 2;
  if (!vars.empty()) Resize(entries);
  for (std::size_t i = 0; i < vars.size(); ++i) Add(vars[i]->name, i);
}

}  // namespace penstock
