#include "executor/table/shard.h"

#include <cstring>
#include <numeric>

namespace penstock::table {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kAlignment = 16;  // of a column

constexpr std::size_t RoundUp(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

std::size_t Sum(const std::vector<std::size_t>& columns) {
  return std::accumulate(columns.begin(), columns.end(), std::size_t{0},
                         [](std::size_t sum, std::size_t bytes) { return sum + RoundUp(bytes, kAlignment); });
}

// Headers alone are not padded to whole lines.
std::size_t RowBytes(const std::vector<std::size_t>& columns) {
  return columns.empty() ? sizeof(RowHeader) : RoundUp(sizeof(RowHeader) + Sum(columns), kLine);
}

}  // namespace

Shard::Shard(const std::vector<std::size_t>& column_bytes) : slabs_(RowBytes(column_bytes)) {
  // The last column ends where the row ends, so columns of whole lines begin with a line.
  std::size_t at = row_bytes() - Sum(column_bytes);
  for (const std::size_t bytes : column_bytes) {
    offsets_.push_back(at);
    at += RoundUp(bytes, kAlignment);
  }
}

Row Shard::Add(std::int64_t id, std::uint32_t hash) {
  const Slot slot = slabs_.Reserve();
  index_.Add(hash, slot);
  slabs_.Add();
  const Row row = At(slot);
  row.header->id = id;
  return row;
}

void Shard::Erase(std::span<const Slot> slots, const Moved& moved) {
  for (std::size_t i = 0; i < slots.size(); ++i) {
    index_.Prefetch(HashOf(At(slots[i]).header->id));
    index_.Prefetch(HashOf(At(size() - 1 - static_cast<Slot>(i)).header->id));
  }
  for (const Slot slot : slots) {
    const Slot last = size() - 1;
    EraseOne(slot);
    if (moved) moved(last, slot);
  }
}

void Shard::EraseOne(Slot slot) {
  const Slot last = size() - 1;
  const Row erased = At(slot), moved = At(last);
  index_.Remove(HashOf(erased.header->id), slot);
  if (slot != last) {
    index_.Change(HashOf(moved.header->id), last, slot);
    std::memcpy(erased.at(0), moved.at(0), row_bytes());
  }
  slabs_.RemoveLast();
}

}  // namespace penstock::table
