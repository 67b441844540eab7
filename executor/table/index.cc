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

Index::Index() : size_max_(kEntries * 7 / 8 << kBitsLeast), now_(kBitsLeast) {}

void Index::Add(std::uint32_t hash, Slot slot) {
  if (size_ == size_max_) BeginMove();
  if (moving()) Move();
  ++size_;
  // now_ gets no entries of lines that are not moved yet, so that its memory is taken bit by bit.
  if (moving() && !IsMoved(old_.HomeOf(hash))) {
    const std::size_t at = old_.PlaceFor(hash);
    if (!IsMoved(at)) return old_.Put(at, hash, slot + 1);
    spilled_ = true;
  }
  now_.Put(now_.PlaceFor(hash), hash, slot + 1);
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
void Index::Move() {
  const std::size_t enough = moved_ + kMovedByAdd;
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
