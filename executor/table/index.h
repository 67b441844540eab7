// Finds the slot of a row by the hash of its id. Open addressing: a line, as long as a cache line, has eight
// entries, each a hash and its slot; where it is full, the search continues in the next one. At most 7/8 of
// the entries are in use, so a search reads one line, rarely two.
//
//   Index index;
//   index.Add(HashOf(id), slot);
//   index.Find(HashOf(id), [&](Slot at) { return ids[at] == id; });       // the slot, or kNoSlot
//   while (!index.Settle(1000)) ...                                       // before entries are removed
//   index.Remove(HashOf(id), slot);
//
// The index grows without a pause: each Add moves some lines to the larger one, in order, and the memory that
// they leave is given back. It keeps 32 bits of a hash; the caller compares ids.
// Throws std::bad_alloc. Not thread-safe; searches may run beside each other.
#pragma once

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "executor/table/pages.h"
#include "executor/table/slab.h"

namespace penstock::table {

// Every bit of the id affects every bit of the result.
inline std::uint32_t HashOf(std::int64_t id) {
  constexpr std::uint64_t kOdd = 0xd6e8feb86659fd93u;
  auto x = static_cast<std::uint64_t>(id);
  x = (x ^ (x >> 32)) * kOdd;
  x = (x ^ (x >> 32)) * kOdd;
  return static_cast<std::uint32_t>(x >> 32);
}

class Index {
 public:
  Index();

  // Loads the line where a search begins.
  void Prefetch(std::uint32_t hash) const {
    const Lines& lines = moving() && !IsMoved(old_.HomeOf(hash)) ? old_ : now_;
    __builtin_prefetch(&lines.data()[lines.HomeOf(hash)]);
  }
  // The slot of this hash for which `same(slot)` is true; kNoSlot if there is none.
  template <typename Same>
  Slot Find(std::uint32_t hash, const Same& same) const {
    if (moving() && !IsMoved(old_.HomeOf(hash))) {
      const Slot found = old_.Find(hash, same);
      if (found != kNoSlot || !spilled_) return found;
    }
    return now_.Find(hash, same);
  }
  // The slot that the search will most probably find.
  Slot Guess(std::uint32_t hash) const {
    return Find(hash, [](Slot) { return true; });
  }
  // Adds an entry that is not there yet.
  void Add(std::uint32_t hash, Slot slot);
  // Moves up to so many lines, if the index grows. Returns true when no line is left to move: until the next
  // Add, entries may be removed and changed.
  bool Settle(std::size_t lines);
  // Removes an entry that is there. A search never passes a line with a free entry, so entries of the lines
  // that follow take the free place where they may.
  void Remove(std::uint32_t hash, Slot slot);
  void Change(std::uint32_t hash, Slot slot, Slot to);
  std::size_t size() const { return size_; }
  std::size_t memory_bytes() const {
    return sizeof(Line) * (moving() ? old_.count() + moved_ : now_.count());
  }

 private:
  static constexpr std::size_t kEntries = 8;
  struct Line {  // filled from the front
    std::uint32_t hashes[kEntries];
    Slot places[kEntries];  // slot + 1; 0: free
    bool full() const { return places[kEntries - 1] != 0; }
  };
  static_assert(sizeof(Line) == 64);

  // A power of two of lines. The leading bits of a hash are the number of its line, its home.
  struct Lines {
    Pages pages;
    int bits = 0;

    Lines() = default;
    explicit Lines(int bits) : pages(sizeof(Line) << bits), bits(bits) {}
    Line* data() const { return reinterpret_cast<Line*>(pages.data()); }
    std::size_t count() const { return std::size_t{1} << bits; }
    std::size_t HomeOf(std::uint32_t hash) const { return hash >> (32 - bits); }
    std::size_t After(std::size_t line) const { return (line + 1) & (count() - 1); }
    template <typename Same>
    Slot Find(std::uint32_t hash, const Same& same) const {
      for (std::size_t at = HomeOf(hash);; at = After(at)) {
        const Line& line = data()[at];
        for (unsigned found = Matches(line, hash); found != 0; found &= found - 1) {
          const Slot slot = line.places[std::countr_zero(found)] - 1;
          if (same(slot)) return slot;
        }
        if (!line.full()) return kNoSlot;
      }
    }
    // The line that takes the next entry of this hash.
    std::size_t PlaceFor(std::uint32_t hash) const;
    void Put(std::size_t line, std::uint32_t hash, Slot place);
    // The line and the entry of this slot, which are there.
    std::pair<std::size_t, std::size_t> PlaceOf(std::uint32_t hash, Slot slot) const;
    void Take(std::size_t line, std::size_t entry);
    // The number of lines from one to the other, around the end.
    std::size_t Distance(std::size_t from, std::size_t to) const { return (to - from) & (count() - 1); }
    // The next line with an entry that a search for it would find in `hole`; nullopt if there is none.
    std::optional<std::pair<std::size_t, std::size_t>> FindFor(std::size_t hole) const;
  };

  // One bit for each entry of this hash.
  static unsigned Matches(const Line& line, std::uint32_t hash) {
#ifdef __SSE2__
    const auto* const hashes = reinterpret_cast<const __m128i*>(line.hashes);
    const auto* const places = reinterpret_cast<const __m128i*>(line.places);
    const __m128i wanted = _mm_set1_epi32(static_cast<int>(hash)), none = _mm_setzero_si128();
    const auto half = [&](int i) {
      return _mm_andnot_si128(_mm_cmpeq_epi32(places[i], none), _mm_cmpeq_epi32(hashes[i], wanted));
    };
    return static_cast<unsigned>(_mm_movemask_epi8(_mm_packs_epi16(_mm_packs_epi32(half(0), half(1)), none)));
#else
    unsigned found = 0;
    for (std::size_t i = 0; i < kEntries; ++i)
      found |= unsigned{line.hashes[i] == hash && line.places[i] != 0} << i;
    return found;
#endif
  }

  bool moving() const { return old_.pages.data() != nullptr; }
  // Whether a line of old_ was moved.
  bool IsMoved(std::size_t line) const { return ((line - begun_) & (old_.count() - 1)) < moved_; }
  void BeginMove();
  void Move(std::size_t lines);
  void ReleaseMoved();

  std::size_t size_ = 0, size_max_;
  Lines now_;
  // While the entries of a smaller index move to now_: that index. Moved are moved_ lines from begun_ on,
  // around the end. Their hashes are looked up in now_, the others in old_; if entries have spilled, then in
  // now_ as well.
  Lines old_;
  std::size_t begun_ = 0, moved_ = 0, released_ = 0;
  // A search went on from lines that are not moved to a moved one, so now_ has its entry.
  bool spilled_ = false;
};

}  // namespace penstock::table
