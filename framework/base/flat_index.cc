#include "framework/base/flat_index.h"

#include <limits>

#include "framework/base/check.h"

namespace penstock {
namespace {
constexpr std::size_t kFirstEntries = 16;
}  // namespace

void FlatIndex::Place(Entry entry) {
  std::size_t at = entry.hash & mask();
  while (table_[at].place != 0) at = (at + 1) & mask();
  table_[at] = entry;
}

void FlatIndex::Resize(std::size_t entries) {
  std::vector<Entry> before(entries);
  before.swap(table_);
  for (const Entry& entry : before) {
    if (entry.place != 0) Place(entry);
  }
}

void FlatIndex::Add(std::uint32_t hash, std::size_t position) {
  PENSTOCK_CHECK(position < std::numeric_limits<std::uint32_t>::max(), "a list of four thousand million");
  // At least half of the entries are free: a search is short.
  if (2 * (used_ + 1) > table_.size()) Resize(table_.empty() ? kFirstEntries : 2 * table_.size());
  Place({hash, static_cast<std::uint32_t>(position) + 1});
  ++used_;
}

void FlatIndex::Free(std::size_t gap) {
  table_[gap] = {};
  --used_;
  // Entries behind the gap may stand there because this slot was taken. Place them again, so that no search
  // for them ends at the gap.
  for (std::size_t at = (gap + 1) & mask(); table_[at].place != 0; at = (at + 1) & mask()) {
    const Entry entry = table_[at];
    table_[at] = {};
    Place(entry);
  }
}

void FlatIndex::Clear() {
  table_.clear();
  used_ = 0;
}

void FlatIndex::Reserve(std::size_t count) {
  std::size_t entries = table_.empty() ? kFirstEntries : table_.size();
  while (entries < 2 * count) entries *= 2;
  if (entries > table_.size()) Resize(entries);
}

}  // namespace penstock
