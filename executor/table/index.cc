#include "executor/table/index.h"

#include <algorithm>
#include <new>

namespace penstock::table {
namespace {

constexpr int kBitsLeast = 6;  // 4 KB
constexpr int kBitsMost = 30;  // entries for all slots
// An Add moves many more entries than it adds: old_ is empty long before now_ is full.
constexpr std::size_t kMovedByAdd = 4;

}  // namespace

std::size_t Index::Lines::PlaceFor(std::uint32_t hash) const {
  std::size_t at = HomeOf(hash);
  while (data()[at].full()) at = After(at);
  return at;
}

void Index::Lines::Put(std::size_t at, std::uint32_t hash, Slot place) {
  Line& line = data()[at];
  std::size_t entry = 0;
  while (line.places[entry] != 0) ++entry;
  line.hashes[entry] = hash;
  line.places[entry] = place;
}

std::pair<std::size_t, std::size_t> Index::Lines::PlaceOf(std::uint32_t hash, Slot slot) const {
  for (std::size_t at = HomeOf(hash);; at = After(at)) {
    for (std::size_t entry = 0; entry < kEntries; ++entry) {
      if (data()[at].places[entry] == slot + 1) return {at, entry};
    }
  }
}

// The last entry takes the place of the one that leaves.
void Index::Lines::Take(std::size_t at, std::size_t entry) {
  Line& line = data()[at];
  std::size_t last = kEntries - 1;
  while (line.places[last] == 0) --last;
  line.hashes[entry] = line.hashes[last];
  line.places[entry] = line.places[last];
  line.hashes[last] = 0;
  line.places[last] = 0;
}

std::optional<std::pair<std::size_t, std::size_t>> Index::Lines::FindFor(std::size_t hole) const {
  for (std::size_t at = After(hole);; at = After(at)) {
    const Line& line = data()[at];
    for (std::size_t entry = 0; entry < kEntries && line.places[entry] != 0; ++entry) {
      const std::size_t home = HomeOf(line.hashes[entry]);
      if (Distance(home, hole) <= Distance(home, at)) return std::pair{at, entry};
    }
    if (!line.full()) return std::nullopt;
  }
}

Index::Index() : size_max_(kEntries * 7 / 8 << kBitsLeast), now_(kBitsLeast) {}

void Index::Add(std::uint32_t hash, Slot slot) {
  if (size_ == size_max_) BeginMove();
  if (moving()) Move(kMovedByAdd);
  ++size_;
  // now_ gets no entries of lines that are not moved yet, so that its memory is taken bit by bit.
  if (moving() && !IsMoved(old_.HomeOf(hash))) {
    const std::size_t at = old_.PlaceFor(hash);
    if (!IsMoved(at)) return old_.Put(at, hash, slot + 1);
    spilled_ = true;
  }
  now_.Put(now_.PlaceFor(hash), hash, slot + 1);
}

bool Index::Settle(std::size_t lines) {
  if (moving()) Move(lines);
  return !moving();
}

void Index::Remove(std::uint32_t hash, Slot slot) {
  auto [hole, entry] = now_.PlaceOf(hash, slot);
  bool full = now_.data()[hole].full();
  now_.Take(hole, entry);
  --size_;
  while (full) {
    const auto next = now_.FindFor(hole);
    if (!next) return;
    const auto [line, moved] = *next;
    now_.Put(hole, now_.data()[line].hashes[moved], now_.data()[line].places[moved]);
    full = now_.data()[line].full();
    now_.Take(line, moved);
    hole = line;
  }
}

void Index::Change(std::uint32_t hash, Slot slot, Slot to) {
  const auto [line, entry] = now_.PlaceOf(hash, slot);
  now_.data()[line].places[entry] = to + 1;
}

void Index::BeginMove() {
  if (now_.bits == kBitsMost) throw std::bad_alloc();
  Lines larger(now_.bits + 1);
  old_ = std::move(now_);
  now_ = std::move(larger);
  size_max_ *= 2;
  // Begins behind a line that is not full: no search passes that border.
  begun_ = 0;
  while (old_.data()[(begun_ - 1) & (old_.count() - 1)].full()) ++begun_;
  moved_ = 0;
  spilled_ = false;
  released_ = (begun_ * sizeof(Line) + kHugePage - 1) / kHugePage * kHugePage;
}

// Moves some lines, and on to the next that is not full: no search passes that border either.
void Index::Move(std::size_t lines) {
  const std::size_t enough = moved_ + lines;
  for (bool full = false; moved_ < old_.count() && (moved_ < enough || full); ++moved_) {
    const Line& line = old_.data()[(begun_ + moved_) & (old_.count() - 1)];
    for (std::size_t i = 0; i < kEntries && line.places[i] != 0; ++i)
      now_.Put(now_.PlaceFor(line.hashes[i]), line.hashes[i], line.places[i]);
    full = line.full();
  }
  if (moved_ == old_.count()) {
    old_ = Lines();
  } else {
    ReleaseMoved();
  }
}

void Index::ReleaseMoved() {
  const std::size_t end = std::min(begun_ + moved_, old_.count()) * sizeof(Line) / kHugePage * kHugePage;
  if (end <= released_) return;
  old_.pages.Release(released_, end);
  released_ = end;
}

}  // namespace penstock::table
