#include "framework/text/row_policy.h"

#include <gtest/gtest.h>

#include "framework/text/policies.h"

namespace penstock {
namespace {

TEST(RowPolicy, RulesRoundTripThroughText) {
  for (const char* text :
       {"entry count 3", "entry probability 0.1", "evict unseen 1000", "evict count 3 after 100",
        "evict shows 0.8 decay 0.98 every 500", "budget_mb 4096", "budget_mb 1, cold_dir \"/cold rows\"",
        "entry count 2, evict unseen 9, budget_mb 1, cold_dir \"a\\\"b\"",
        "entry count 2, evict unseen 9, evict count 3 after 4, evict shows 1 decay 0.5 every 7, budget_mb "
        "1"}) {
    const auto policy = ParseRowPolicy(text);
    ASSERT_TRUE(policy.ok()) << policy.status().ToString();
    EXPECT_EQ(policy->ToString(), text);
    EXPECT_FALSE(policy->none());
  }
  EXPECT_EQ(ParseRowPolicy(" budget_mb 5,evict unseen 7 ")->ToString(), "evict unseen 7, budget_mb 5");
  EXPECT_EQ(ParseRowPolicy("cold_dir \"c\", budget_mb 5")->ToString(), "budget_mb 5, cold_dir \"c\"");
  EXPECT_EQ(RowPolicy().ToString(), "");
  EXPECT_TRUE(RowPolicy().none());
}

TEST(RowPolicy, ABudgetEvictsUnlessRowsGoToDisk) {
  EXPECT_TRUE(ParseRowPolicy("budget_mb 5")->has_eviction());
  EXPECT_FALSE(ParseRowPolicy("budget_mb 5, cold_dir \"c\"")->has_eviction());
  EXPECT_TRUE(ParseRowPolicy("evict unseen 3, budget_mb 5, cold_dir \"c\"")->has_eviction());
}

TEST(RowPolicy, InvalidRulesAreRefused) {
  const auto id = [](std::string_view text) { return ParseRowPolicy(text).status().id(); };
  for (const char* text :
       {"", "count 3", "entry", "entry 3", "entry count", "entry count many",
        "entry count 2, entry probability 0.5", "evict unseen 2, evict unseen 3", "evict count 3",
        "evict count 3 after", "evict shows 2 decay 0.5", "evict unseen 1.5", "budget_mb 1, budget_mb 2",
        "budget_mb 1, cold_dir c", "budget_mb 1, cold_dir \"c\", cold_dir \"d\"",
        "entry count 3 evict unseen 4", ", entry count 3", "entry count 3,", "ads: entry count 3"}) {
    EXPECT_EQ(id(text), "E-text-syntax") << text;
  }
  for (const char* text :
       {"entry count 0", "entry count -1", "entry count 1000000001", "entry probability 0",
        "entry probability 1.01", "entry probability -0.5", "evict unseen 0", "evict count 0 after 5",
        "evict count 5 after 0", "evict shows 0 decay 0.5 every 1", "evict shows 1e999 decay 0.5 every 1",
        "evict shows 1 decay 1 every 1", "evict shows 1 decay 0 every 1", "evict shows 1 decay 0.5 every 0",
        "budget_mb 0", "budget_mb 1073741825", "cold_dir \"c\"", "budget_mb 1, cold_dir \"\""}) {
    EXPECT_EQ(id(text), "E-row-policy-value") << text;
  }
}

TEST(RowPolicies, NameTheirTables) {
  for (const char* text :
       {"", "ads: entry count 3", "ads: budget_mb 2, cold_dir \"c\", cold_dir: budget_mb 3, cold_dir \"d\"",
        "\"a b\": budget_mb 2, ads: entry count 3, evict unseen 7, evict: evict unseen 8"}) {
    const auto policies = ParseRowPolicies(text);
    ASSERT_TRUE(policies.ok()) << policies.status().ToString();
    EXPECT_EQ(ToString(*policies), text);
  }
  EXPECT_EQ(ParseRowPolicies("b: entry count 2, a: budget_mb 1")->at("a").budget_mb, 1);
  for (const char* text :
       {"entry count 3", "a: entry count 2, a: budget_mb 1", "a:", "a: entry count 2 b: budget_mb 1"})
    EXPECT_EQ(ParseRowPolicies(text).status().id(), "E-text-syntax") << text;
}

TEST(RowPolicies, StandAmongTheJobsPolicies) {
  ProgramMeta meta;
  JobPolicies policies;
  policies.rows["words"].entry_count = 3;
  WritePolicies(policies, meta);
  EXPECT_EQ(meta.policies.at("rows"), "words: entry count 3");
  EXPECT_EQ(*ReadPolicies(meta), policies);
  WritePolicies({}, meta);
  EXPECT_TRUE(meta.policies.empty());
  meta.policies["rows"] = "words: entry count 0";
  EXPECT_EQ(ReadPolicies(meta).status().id(), "E-row-policy-value");
}

}  // namespace
}  // namespace penstock
