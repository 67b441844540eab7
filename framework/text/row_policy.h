// Which ids of a table sharded by id get a row, and which rows are given up again, as a value and as text.
//
//   PENSTOCK_ASSIGN_OR_RETURN(RowPolicy policy, ParseRowPolicy("entry count 3, evict unseen 1000"));
//   policy.entry_count     // 3: an id gets its row in the third step that lists it
//   policy.unseen          // 1000: a row that no step has listed for more than 1000 steps is evicted
//   policy.ToString()      // the same text, rules in this order
//
//   policy = rule { "," rule }
//   rule   = "entry" "count" N  |  "entry" "probability" P
//          | "evict" "unseen" N  |  "evict" "count" N "after" N  |  "evict" "shows" X "decay" X "every" N
//          | "budget_mb" N  |  "cold_dir" STRING
//
// At most one rule of each kind, and one for entry; cold_dir needs budget_mb. A step of the table is one of
// its updates.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "framework/base/status.h"

namespace penstock {

// The attribute of lookups in the user's program that has the text.
inline constexpr char kRowPolicyAttr[] = "row_policy";

struct RowPolicy {
  // Entry. 0: there is no such rule. Without a rule, the first gradient makes the row.
  std::int64_t entry_count = 0;  // the id enters in the step that is this many'th to list it
  double entry_probability = 0;  // each step that lists the id lets it enter with this probability
  // Eviction. A row is evicted when any rule says so. 0: there is no such rule.
  std::int64_t unseen = 0;       // no step has listed the id for more than so many steps
  std::int64_t count = 0;        // fewer steps than this have listed the id,
  std::int64_t count_after = 0;  // and none for more than so many steps
  double shows = 0;              // the decayed number of steps that listed the id is below this
  double decay = 1;              // by which that number is multiplied
  std::int64_t decay_every = 0;  // at the end of so many steps
  std::int64_t budget_mb =
      0;  // rows take at most so many MB (2^20 bytes) of a pserver; the longest unseen go
  // Where they go: to files in this folder of the pserver's host, and come back when a step lists them.
  // Empty: they are evicted.
  std::string cold_dir = {};

  bool has_entry() const { return entry_count > 0 || entry_probability > 0; }
  bool has_eviction() const { return unseen > 0 || count > 0 || shows > 0 || (budget_mb > 0 && !has_cold()); }
  bool has_cold() const { return !cold_dir.empty(); }
  bool none() const { return !has_entry() && !has_eviction() && !has_cold(); }
  std::string ToString() const;  // empty if there is no rule
  friend bool operator==(const RowPolicy&, const RowPolicy&) = default;
};

// kInvalidArgument: E-text-syntax, with the place; E-row-policy-value, a number that is out of range.
Result<RowPolicy> ParseRowPolicy(std::string_view text);

// The policies of several tables: each begins with the name of its table and a colon.
//
//   ads: entry count 3, evict unseen 1000, words: budget_mb 64
using RowPolicies = std::map<std::string, RowPolicy, std::less<>>;
std::string ToString(const RowPolicies& policies);
Result<RowPolicies> ParseRowPolicies(std::string_view text);

}  // namespace penstock
