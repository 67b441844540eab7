// Rows by id. A row is one piece of memory: a header, then its columns, which are the value and the states of
// the optimizer.
//
//   Shard shard({64, 64});                                   // a value and a state of 16 floats
//   shard.Require(ids, [&](std::size_t i, Row row) { rows[i] = row.header; },
//                 [&](Row made) { *made.header; });          // before it, for each row that is new
//   shard.Visit(ids, [&](std::size_t i, Row row) { rows[i] = row.header; });   // null: the id has no row
//   if (shard.Settle(1000)) shard.Erase(slots, [&](Slot from, Slot to) {});    // slots in descending order
//
// A row stays where it is until rows are erased: then rows with the last slots take their places, and memory
// behind the rows can be released. Batches are worked on in stages, some ids apart, so that the memory of
// many rows is awaited at once: hash the id and fetch its line of the index; look up the slot and fetch the
// row; call.
//
// Nothing depends on the order of hashes. Not thread-safe; const calls may run beside each other. Throws
// std::bad_alloc.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "executor/table/index.h"
#include "executor/table/slab.h"

namespace penstock::table {

struct RowHeader {
  std::int64_t id = 0;
  // Of the table, after the last update that the row has: later ones did not list it. 0: before all updates.
  std::uint64_t version = 0;
  std::uint32_t count = 0;  // updates that changed the row
  std::uint32_t entry = 0;  // the row's place in the update of this version
  float shows = 0;          // updates that changed the row, decayed up to that version (RowLife)
};

struct Row {
  RowHeader* header = nullptr;
  Slot slot = kNoSlot;

  explicit operator bool() const { return header != nullptr; }
  std::byte* at(std::size_t offset) const { return reinterpret_cast<std::byte*>(header) + offset; }
};

class Shard {
 public:
  explicit Shard(const std::vector<std::size_t>& column_bytes);

  std::size_t row_bytes() const { return slabs_.row_bytes(); }
  // Where a column begins: bytes from the begin of a row, a multiple of 16.
  const std::vector<std::size_t>& offsets() const { return offsets_; }
  // Rows have the slots from 0 on, in the order in which they were made while none is erased.
  Slot size() const { return slabs_.size(); }
  Row At(Slot slot) const { return {reinterpret_cast<RowHeader*>(slabs_.At(slot)), slot}; }
  Row Find(std::int64_t id) const { return Find(id, HashOf(id), kNoSlot); }

  // Calls visit(i, row) for each of `ids`, in order.
  template <typename Call>
  void Visit(std::span<const std::int64_t> ids, const Call& visit) const {
    InStages(ids,
             [&](std::size_t i, std::uint32_t hash, Slot guess) { visit(i, Find(ids[i], hash, guess)); });
  }
  // Does the same, but makes the rows that are missing, with columns of zeros, and calls make(row) first.
  template <typename Call, typename Make>
  void Require(std::span<const std::int64_t> ids, const Call& visit, const Make& make) {
    InStages(ids, [&](std::size_t i, std::uint32_t hash, Slot guess) {
      Row row = Find(ids[i], hash, guess);
      if (!row) {
        row = Add(ids[i], hash);
        make(row);
      }
      visit(i, row);
    });
  }
  // Continues the growth of the index by up to so many lines. Returns true when it is complete: until the
  // next row is made, rows can be erased.
  bool Settle(std::size_t lines) { return index_.Settle(lines); }
  std::size_t index_bytes() const { return index_.memory_bytes(); }
  // Erases the rows with these slots, in descending order. The last row takes the slot of each, unless it is
  // the erased row itself; then calls moved(from, to), where `from` is the slot that is no longer in use.
  using Moved = std::function<void(Slot from, Slot to)>;
  void Erase(std::span<const Slot> slots, const Moved& moved);
  // Gives some of the memory behind the rows back to the system; true if there was some.
  bool ReleaseSpare() { return slabs_.ReleaseSpare(); }
  void Prefetch(const std::byte* row) const {
    for (std::size_t at = 0; at < row_bytes(); at += 64) __builtin_prefetch(row + at);
  }

 private:
  static constexpr std::size_t kPortion = 32;  // ids of a stage

  Row Find(std::int64_t id, std::uint32_t hash, Slot guess) const {
    if (guess != kNoSlot && At(guess).header->id == id) return At(guess);
    const Slot slot = index_.Find(hash, [&](Slot at) { return At(at).header->id == id; });
    return slot == kNoSlot ? Row() : At(slot);
  }
  Row Add(std::int64_t id, std::uint32_t hash);
  void EraseOne(Slot slot);

  template <typename Call>
  void InStages(std::span<const std::int64_t> ids, const Call& call) const {
    std::array<std::uint32_t, 4 * kPortion> hashes;
    std::array<Slot, 2 * kPortion> guesses;
    const auto portion = [&](std::size_t begin, const auto& stage) {
      const std::size_t end = std::min(begin + kPortion, ids.size());
      for (std::size_t i = begin; i < end; ++i) stage(i);
    };
    const auto hash = [&](std::size_t i) {
      hashes[i % hashes.size()] = HashOf(ids[i]);
      index_.Prefetch(hashes[i % hashes.size()]);
    };
    const auto guess = [&](std::size_t i) {
      const Slot slot = index_.Guess(hashes[i % hashes.size()]);
      guesses[i % guesses.size()] = slot;
      if (slot != kNoSlot) Prefetch(slabs_.At(slot));
    };
    portion(0, hash);
    portion(kPortion, hash);
    portion(0, guess);
    for (std::size_t begin = 0; begin < ids.size(); begin += kPortion) {
      portion(begin + 2 * kPortion, hash);
      portion(begin + kPortion, guess);
      portion(begin, [&](std::size_t i) { call(i, hashes[i % hashes.size()], guesses[i % guesses.size()]); });
    }
  }

  std::vector<std::size_t> offsets_;
  Index index_;
  Slabs slabs_;
};

}  // namespace penstock::table
