#include "executor/table/index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace penstock::table {
namespace {

Slot Find(const Index& index, std::uint32_t hash, Slot wanted) {
  return index.Find(hash, [=](Slot at) { return at == wanted; });
}

TEST(Index, AnEmptyIndexFindsNothing) {
  const Index index;
  EXPECT_EQ(index.Guess(0), kNoSlot);
  EXPECT_EQ(index.Guess(~0u), kNoSlot);
  EXPECT_EQ(index.size(), 0u);
}

// Sizes pass every state of several moves to a larger index.
TEST(Index, GrowthKeepsAllEntries) {
  Index index;
  std::map<Slot, std::uint32_t> added;
  for (Slot slot = 0; slot < 60'000; ++slot) {
    const std::uint32_t hash = HashOf(slot * 7919);
    index.Add(hash, slot);
    added.emplace(slot, hash);
    ASSERT_EQ(Find(index, hash, slot), slot) << "just added";
    const auto earlier = added.lower_bound(HashOf(slot) % (slot + 1));
    ASSERT_EQ(Find(index, earlier->second, earlier->first), earlier->first) << "with " << slot << " entries";
    ASSERT_EQ(Find(index, HashOf(-1 - slot), slot + 1), kNoSlot);
  }
  for (const auto& [slot, hash] : added) ASSERT_EQ(Find(index, hash, slot), slot);
  EXPECT_EQ(index.size(), added.size());
}

// In lines that overflow into the next ones, around the end too, and at every fill.
TEST(Index, RemovedEntriesLeaveTheOthersFound) {
  std::mt19937 random(17);
  for (int round = 0; round < 30; ++round) {
    Index index;
    std::map<Slot, std::uint32_t> there;
    const unsigned crowded = random() % 100;
    Slot next = 0;
    for (int step = 0; step < 6000; ++step) {
      const bool adds = there.empty() || random() % 100 < (step / 1500 % 2 == 0 ? 80u : 20u);
      if (adds) {
        const std::uint32_t hash = random() % 100 < crowded ? ~0u - random() % (1u << 26) : random();
        index.Add(hash, next);
        there.emplace(next++, hash);
        continue;
      }
      while (!index.Settle(7)) {
      }
      auto at = there.lower_bound(random() % next);
      if (at == there.end()) at = there.begin();
      const auto [slot, hash] = *at;
      if (step % 3 == 0) {  // takes another slot first
        index.Change(hash, slot, next);
        there.emplace(next, hash);
        ASSERT_EQ(Find(index, hash, next), next);
        ++next;
      } else {
        index.Remove(hash, slot);
      }
      there.erase(slot);
      ASSERT_EQ(Find(index, hash, slot), kNoSlot) << round << " " << step;
      ASSERT_EQ(index.size(), there.size());
      if (step % 50 != 0) continue;
      for (const auto& [kept, its] : there) ASSERT_EQ(Find(index, its, kept), kept) << round << " " << step;
    }
  }
}

TEST(Index, EntriesOfOneHashAreToldApart) {
  Index index;
  for (const std::uint32_t hash : {0u, 0x80000000u, ~0u}) {
    const auto first = static_cast<Slot>(index.size());
    for (Slot slot = first; slot < first + 1000; ++slot) index.Add(hash, slot);
    for (Slot slot = first; slot < first + 1000; ++slot) ASSERT_EQ(Find(index, hash, slot), slot) << hash;
    EXPECT_EQ(Find(index, hash, first + 1000), kNoSlot);
  }
  EXPECT_EQ(Find(index, 1, 0), kNoSlot);
}

// The last lines overflow to the first: where a move to a larger index begins, and where it ends.
TEST(Index, AFullEndContinuesAtTheBegin) {
  std::mt19937 random(3);
  for (int round = 0; round < 20; ++round) {
    Index index;
    std::vector<std::uint32_t> hashes;
    const unsigned near_the_end = random() % 100;
    for (Slot slot = 0; slot < 4000; ++slot) {
      const bool at_end = random() % 100 < near_the_end;
      hashes.push_back(at_end ? ~0u - random() % (1u << 24) : random());
      index.Add(hashes.back(), slot);
      const Slot some = random() % (slot + 1);
      ASSERT_EQ(Find(index, hashes[some], some), some) << round << " " << slot;
    }
    for (Slot slot = 0; slot < hashes.size(); ++slot) ASSERT_EQ(Find(index, hashes[slot], slot), slot);
  }
}

// The last lines overflow to the first ones, whose memory is given back before the last ones are moved.
TEST(Index, ReleasedMemoryHoldsNoEntries) {
  Index index;
  constexpr Slot kAtTheEnd = 100, kAll = 470'000;
  for (Slot slot = 0; slot < kAll; ++slot) {
    index.Add(slot < kAtTheEnd ? ~0u : HashOf(slot), slot);
    if (slot % 1000 != 0) continue;
    for (Slot some = 0; some < std::min(slot, kAtTheEnd); ++some)
      ASSERT_EQ(Find(index, ~0u, some), some) << slot;
  }
  for (Slot slot = kAtTheEnd; slot < kAll; ++slot) ASSERT_EQ(Find(index, HashOf(slot), slot), slot);
}

TEST(Index, GuessesAreOfTheHash) {
  Index index;
  for (Slot slot = 0; slot < 10'000; ++slot) index.Add(HashOf(slot), slot);
  for (Slot slot = 0; slot < 10'000; ++slot) {
    const Slot guess = index.Guess(HashOf(slot));
    ASSERT_NE(guess, kNoSlot);
    EXPECT_EQ(HashOf(guess), HashOf(slot));
  }
}

}  // namespace
}  // namespace penstock::table
