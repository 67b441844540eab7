#include "executor/table/row_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace penstock::table {
namespace {

RowPolicy PolicyOf(std::string_view text) { return ParseRowPolicy(text).value(); }

TEST(EntryRule, AnIdEntersByItsCount) {
  const EntryRule rule(PolicyOf("entry count 3"));
  EXPECT_TRUE(rule.any());
  EXPECT_FALSE(rule.Enters(5, 2));
  EXPECT_TRUE(rule.Enters(5, 3));
  EXPECT_TRUE(rule.Enters(5, 4));
  EXPECT_FALSE(EntryRule(PolicyOf("entry count 1")).any()) << "every id enters at once";
  EXPECT_FALSE(EntryRule(PolicyOf("entry probability 1")).any());
  EXPECT_FALSE(EntryRule({}).any());
}

TEST(EntryRule, TheProbabilityIsTheShareOfStepsInWhichIdsEnter) {
  const EntryRule rule(PolicyOf("entry probability 0.2"));
  for (const std::uint32_t count : {1u, 2u, 7u}) {
    int enter = 0;
    for (std::int64_t id = -5000; id < 5000; ++id) enter += rule.Enters(id, count) ? 1 : 0;
    EXPECT_NEAR(enter, 2000, 5 * std::sqrt(10000 * 0.2 * 0.8)) << count;
  }
  int together = 0;
  for (std::int64_t id = 0; id < 10000; ++id) together += rule.Enters(id, 1) && rule.Enters(id, 2) ? 1 : 0;
  EXPECT_NEAR(together, 400, 5 * std::sqrt(10000 * 0.04)) << "independent of each other";
  EXPECT_EQ(rule.Enters(77, 3), EntryRule(PolicyOf("entry probability 0.2")).Enters(77, 3));
}

TEST(EvictionRule, ARowIsGoneWhenItIsUnseenForLonger) {
  const EvictionRule rule(PolicyOf("evict unseen 10"));
  const RowHeader row{.version = 5, .count = 1};
  EXPECT_FALSE(rule.IsGone(row, 15));
  EXPECT_TRUE(rule.IsGone(row, 16));
  EXPECT_FALSE(rule.IsGone(row, 4)) << "a row that is newer than the sweep";
  EXPECT_TRUE(rule.IsForgotten(row, 16));
  EXPECT_FALSE(rule.IsForgotten(row, 15));
}

TEST(EvictionRule, GoneFromIsTheFirstVersionAtWhichARowIsGone) {
  std::mt19937_64 random(6);
  for (const char* text : {"evict unseen 10", "evict count 3 after 4", "evict shows 1.5 decay 0.7 every 9",
                           "evict shows 0.01 decay 0.98 every 2", "evict shows 3 decay 0.5 every 1",
                           "evict unseen 60, evict count 2 after 30, evict shows 1.5 decay 0.7 every 9"}) {
    const EvictionRule rule(ParseRowPolicy(text).value());
    for (int i = 0; i < 100; ++i) {
      const RowHeader row = {.version = random() % 50,
                             .count = static_cast<std::uint32_t>(random() % 6),
                             .shows = static_cast<float>(random() % 100 + 1) / 8};
      std::uint64_t first = row.version;
      while (first < 2000 && !rule.IsGone(row, first)) ++first;
      EXPECT_EQ(std::min<std::uint64_t>(rule.GoneFrom(row), 2000), first)
          << text << " " << row.version << " " << row.count << " " << row.shows;
    }
  }
  EXPECT_EQ(EvictionRule(ParseRowPolicy("entry count 3").value()).GoneFrom({.version = 4}), kNeverGone);
}

TEST(EvictionRule, ARareRowIsGoneAfterItsTime) {
  const EvictionRule rule(PolicyOf("evict count 3 after 4"));
  EXPECT_FALSE(rule.IsGone({.version = 5, .count = 2}, 9));
  EXPECT_TRUE(rule.IsGone({.version = 5, .count = 2}, 10));
  EXPECT_FALSE(rule.IsGone({.version = 5, .count = 3}, 1000));
  EXPECT_FALSE(rule.IsForgotten({.version = 5, .count = 1}, 1000)) << "of rows alone";
}

// As the accessor of Paddle: at the end of a period shows are multiplied by the rate, then compared.
TEST(EvictionRule, ShowsDecayAtTheEndOfEachPeriod) {
  const EvictionRule rule(PolicyOf("evict shows 1 decay 0.5 every 10"));
  RowHeader row{.version = 9, .count = 4, .shows = 3};
  EXPECT_FALSE(rule.IsGone(row, 9));
  EXPECT_FALSE(rule.IsGone(row, 10)) << "1.5";
  EXPECT_FALSE(rule.IsGone(row, 19));
  EXPECT_TRUE(rule.IsGone(row, 20)) << "0.75";
  EXPECT_EQ(rule.ShowsAfter(row, 9), 4);
  EXPECT_EQ(rule.ShowsAfter(row, 10), 2.5f);
  EXPECT_EQ(rule.ShowsAfter(row, 35), 1.375f);
  row = {.version = 11, .count = 1, .shows = 0.5f};
  EXPECT_FALSE(rule.IsGone(row, 19)) << "a row stays until the end of its first period";
  EXPECT_TRUE(rule.IsGone(row, 20));
}

TEST(EvictionRule, AnyRuleEvicts) {
  const EvictionRule rule(
      PolicyOf("evict unseen 100, evict count 2 after 5, evict shows 2 decay 0.5 every 8"));
  EXPECT_TRUE(rule.IsGone({.version = 1, .count = 1, .shows = 100}, 7));
  EXPECT_FALSE(rule.IsGone({.version = 1, .count = 9, .shows = 100}, 8));
  EXPECT_TRUE(rule.IsGone({.version = 1, .count = 9, .shows = 3}, 8));
  EXPECT_TRUE(rule.IsGone({.version = 1, .count = 9, .shows = 1e30f}, 102));
  EXPECT_FALSE(EvictionRule({}).any());
  EXPECT_FALSE(EvictionRule({}).IsGone({.version = 0}, 1u << 30));
}

// What sweeps rely on: between two touches nothing comes back.
TEST(EvictionRule, ARowThatIsGoneStaysGone) {
  for (const char* text : {"evict unseen 7", "evict count 3 after 4", "evict shows 0.9 decay 0.9 every 3",
                           "evict unseen 50, evict count 2 after 5, evict shows 2 decay 0.5 every 8"}) {
    const EvictionRule rule(PolicyOf(text));
    for (std::uint64_t version = 0; version < 20; ++version) {
      for (const std::uint32_t count : {1u, 2u, 5u}) {
        const RowHeader row{.version = version, .count = count, .shows = static_cast<float>(count)};
        bool gone = false;
        for (std::uint64_t now = version; now < 120; ++now) {
          ASSERT_TRUE(!gone || rule.IsGone(row, now)) << text << " " << version << " " << now;
          gone = gone || rule.IsGone(row, now);
        }
      }
    }
  }
}

}  // namespace
}  // namespace penstock::table
