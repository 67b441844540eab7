#include "executor/table/shard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <random>

namespace penstock::table {
namespace {

float& ValueOf(const Shard& shard, Row row) { return *reinterpret_cast<float*>(row.at(shard.offsets()[0])); }

TEST(Shard, ColumnsOfWholeLinesBeginWithALine) {
  const Shard values({64}), states({64, 64, 64}), short_row({12, 12}), headers({});
  EXPECT_EQ(values.row_bytes(), 128u);
  EXPECT_EQ(values.offsets(), (std::vector<std::size_t>{64}));
  EXPECT_EQ(states.row_bytes(), 256u);
  EXPECT_EQ(states.offsets(), (std::vector<std::size_t>{64, 128, 192}));
  EXPECT_EQ(short_row.row_bytes(), 64u);
  EXPECT_EQ(short_row.offsets(), (std::vector<std::size_t>{32, 48}));
  EXPECT_EQ(headers.row_bytes(), sizeof(RowHeader));
}

TEST(Shard, RowsAreMadeOnceAndInOrder) {
  Shard shard({4});
  const std::vector<std::int64_t> ids = {5, -1, 5, std::numeric_limits<std::int64_t>::min()};
  std::vector<Slot> slots;
  std::vector<std::int64_t> made;
  const auto require = [&] {
    slots.clear();
    shard.Require(
        ids, [&](std::size_t, Row row) { slots.push_back(row.slot); },
        [&](Row row) { made.push_back(row.header->id); });
  };
  require();
  EXPECT_EQ(slots, (std::vector<Slot>{0, 1, 0, 2}));
  EXPECT_EQ(made, (std::vector<std::int64_t>{5, -1, ids[3]}));
  require();
  EXPECT_EQ(slots, (std::vector<Slot>{0, 1, 0, 2}));
  EXPECT_EQ(made.size(), 3u) << "once each";
  EXPECT_FALSE(shard.Find(0));
  EXPECT_EQ(shard.Find(-1).slot, 1u);
  EXPECT_EQ(shard.size(), 3u);
}

// Batches of all sizes around the portions in which they are worked on; ids near each other and far apart.
TEST(Shard, AnyBatchesGiveTheRowsOfAMap) {
  std::mt19937_64 random(11);
  Shard shard({4, 4});
  std::map<std::int64_t, float> map;
  std::map<std::int64_t, const std::byte*> places;
  for (int batch = 0; batch < 600; ++batch) {
    const auto range = std::uint64_t{1} << (random() % 18);
    std::vector<std::int64_t> ids(random() % 200);
    for (std::int64_t& id : ids) {
      id = static_cast<std::int64_t>(random() % range);
      if (batch % 3 == 0) id = static_cast<std::int64_t>(static_cast<std::uint64_t>(id) << 45);
    }
    std::size_t next = 0;
    if (batch % 2 == 0) {
      shard.Require(
          ids,
          [&](std::size_t i, Row row) {
            ASSERT_EQ(i, next++);
            ASSERT_EQ(row.header->id, ids[i]);
            ValueOf(shard, row) += 1;
            map[ids[i]] += 1;
            const std::byte* const at = row.at(0);
            ASSERT_EQ(places.emplace(ids[i], at).first->second, at) << "a row stays where it is";
          },
          [&](Row row) { ASSERT_FALSE(map.contains(row.header->id)); });
    } else {
      shard.Visit(ids, [&](std::size_t i, Row row) {
        ASSERT_EQ(i, next++);
        ASSERT_EQ(static_cast<bool>(row), map.contains(ids[i]));
        ASSERT_EQ(row ? ValueOf(shard, row) : 0, row ? map[ids[i]] : 0);
      });
    }
    ASSERT_EQ(next, ids.size());
    ASSERT_EQ(shard.size(), map.size());
  }
  EXPECT_GT(map.size(), 8000u) << "after several moves of the index";
  for (Slot slot = 0; slot < shard.size(); ++slot) {
    const Row row = shard.At(slot);
    ASSERT_EQ(ValueOf(shard, row), map.at(row.header->id));
  }
}

// With memory given back at times, so that rows are made where others were.
TEST(Shard, ErasedRowsLeaveTheRowsOfAMap) {
  std::mt19937_64 random(23);
  Shard shard({4, 4});
  std::map<std::int64_t, float> map;
  for (int batch = 0; batch < 400; ++batch) {
    std::vector<std::int64_t> ids(random() % 400);
    for (std::int64_t& id : ids) id = static_cast<std::int64_t>(random() % 20'000);
    shard.Require(
        ids,
        [&](std::size_t i, Row row) {
          ValueOf(shard, row) += 1;
          map[ids[i]] += 1;
        },
        [&](Row row) {
          ASSERT_FALSE(map.contains(row.header->id));
          ASSERT_EQ(ValueOf(shard, row), 0) << "a new row is 0";
          ASSERT_EQ(row.header->count, 0u);
        });
    if (batch % 4 != 0) continue;
    while (!shard.Settle(100)) {
    }
    std::vector<Slot> slots;
    const std::size_t keeps = batch % 40 == 0 ? 20 : 3;  // of which one is erased
    for (Slot slot = shard.size(); slot-- > 0;) {
      if (random() % keeps == 0) slots.push_back(slot);
    }
    for (const Slot slot : slots) map.erase(shard.At(slot).header->id);
    const Slot before = shard.size();
    Slot last = before;
    shard.Erase(slots, [&](Slot from, Slot to) {
      ASSERT_EQ(from, --last);
      ASSERT_LE(to, from);
    });
    ASSERT_EQ(shard.size(), before - slots.size());
    ASSERT_EQ(shard.size(), map.size());
    for (Slot slot = 0; slot < shard.size(); ++slot) {
      const Row row = shard.At(slot);
      ASSERT_EQ(ValueOf(shard, row), map.at(row.header->id));
      ASSERT_EQ(shard.Find(row.header->id).slot, slot);
    }
    for (int i = 0; i < 100; ++i) {
      const auto id = static_cast<std::int64_t>(random() % 20'000);
      ASSERT_EQ(static_cast<bool>(shard.Find(id)), map.contains(id));
    }
    while (shard.ReleaseSpare()) {
    }
  }
}

TEST(Shard, RowsMadeInReleasedMemoryAreZero) {
  Shard shard({4096});
  std::vector<std::int64_t> ids(5000);  // 3 slabs
  std::iota(ids.begin(), ids.end(), std::int64_t{0});
  const auto fill = [&] {
    shard.Require(
        ids, [&](std::size_t, Row row) { std::memset(row.at(shard.offsets()[0]), 1, 4096); },
        [&](Row row) {
          const std::byte* const values = row.at(shard.offsets()[0]);
          ASSERT_TRUE(std::all_of(values, values + 4096, [](std::byte b) { return b == std::byte{0}; }));
        });
  };
  fill();
  while (!shard.Settle(1000)) {
  }
  std::vector<Slot> slots;
  for (Slot slot = shard.size(); slot-- > 700;) slots.push_back(slot);
  shard.Erase(slots, {});
  int released = 0;
  while (shard.ReleaseSpare()) ++released;
  EXPECT_EQ(released, 3) << "once for each slab";
  fill();
  EXPECT_EQ(shard.size(), 5000u);
}

TEST(Shard, RowsOfSeveralSlabsStayApart) {
  Shard shard({4096});
  std::vector<std::int64_t> ids(5000);  // 21 MB
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(i);
  shard.Require(
      ids,
      [&](std::size_t i, Row row) {
        std::memset(row.at(shard.offsets()[0]), static_cast<int>(i % 251), 4096);
      },
      [](Row) {});
  shard.Visit(ids, [&](std::size_t i, Row row) {
    const std::byte* const values = row.at(shard.offsets()[0]);
    ASSERT_EQ(values[0], static_cast<std::byte>(i % 251));
    ASSERT_EQ(values[4095], static_cast<std::byte>(i % 251));
    ASSERT_EQ(row.header->id, ids[i]);
  });
}

}  // namespace
}  // namespace penstock::table
