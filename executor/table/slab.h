// The memory of a table's rows: numbered slots of equal size, in slabs that never move.
//
//   Slabs slabs(128);                     // bytes of a row
//   const Slot slot = slabs.Reserve();    // the next: 0, then 1, 2 ...
//   slabs.Add();                          // is in use
//   std::byte* row = slabs.At(slot);      // 128 bytes, 0 at first
//   slabs.RemoveLast();                   // the last slot is not in use any more
//   slabs.ReleaseSpare();                 // gives memory behind the last slot back to the system
//
// Throws std::bad_alloc. Not thread-safe; At may run beside At.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/table/pages.h"

namespace penstock::table {

using Slot = std::uint32_t;
inline constexpr Slot kNoSlot = ~Slot{0};

class Slabs {
 public:
  explicit Slabs(std::size_t row_bytes);

  std::size_t row_bytes() const { return row_bytes_; }
  Slot size() const { return size_; }
  std::byte* At(Slot slot) const {
    return begins_[slot >> shift_] + (slot & ((Slot{1} << shift_) - 1)) * row_bytes_;
  }
  Slot Reserve() {
    if (size_ == capacity_) Grow();
    return size_;
  }
  // After Reserve. A slot that was in use before is set to 0.
  void Add() {
    if (size_ < used_) {
      Clear(size_);
    } else {
      ++used_;
    }
    ++size_;
  }
  void RemoveLast() { --size_; }
  // Takes up to a millisecond; returns true if there was something to release.
  bool ReleaseSpare();

 private:
  void Grow();
  void Clear(Slot slot);

  std::size_t row_bytes_;
  int shift_ = 0;  // a slab has 1 << shift_ rows
  Slot size_ = 0, capacity_ = 0;
  Slot used_ = 0;                   // slots from here on are 0
  std::vector<std::byte*> begins_;  // of the slabs
  std::vector<Pages> slabs_;
};

}  // namespace penstock::table
