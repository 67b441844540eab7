// The rules of a table's RowPolicy: which ids enter, and which rows are evicted. Each result is a function of
// the id, the row's header and the version of the table, so it does not depend on other rows, on the number
// of servers or on time.
//
//   const EntryRule entry(policy);
//   entry.Enters(id, 3);                  // in the third step that lists it
//   const EvictionRule eviction(policy);
//   eviction.IsGone(header, version);     // the row counts as evicted until it is listed
//
// Without a gradient that lists it, a row that is gone at one version is gone at each later one.
#pragma once

#include <cstdint>
#include <limits>

#include "executor/table/shard.h"
#include "framework/text/row_policy.h"

namespace penstock::table {

inline constexpr std::uint64_t kNeverGone = std::numeric_limits<std::uint64_t>::max();

class EntryRule {
 public:
  explicit EntryRule(const RowPolicy& policy)
      : count_(policy.entry_count), probability_(policy.entry_probability) {}

  bool any() const { return count_ > 1 || (probability_ > 0 && probability_ < 1); }
  // Whether an id without a row gets one in the count'th step that lists it, counted from 1.
  bool Enters(std::int64_t id, std::uint32_t count) const;

 private:
  std::int64_t count_;
  double probability_;
};

class EvictionRule {
 public:
  explicit EvictionRule(const RowPolicy& policy) : policy_(policy) {}

  bool any() const { return policy_.unseen > 0 || policy_.count > 0 || policy_.shows > 0; }
  bool IsGone(const RowHeader& row, std::uint64_t now) const;
  // The first version at which the row is gone if nothing lists it.
  std::uint64_t GoneFrom(const RowHeader& row) const;
  // As IsGone, for an id that has no row yet: it is forgotten when it is unseen.
  bool IsForgotten(const RowHeader& row, std::uint64_t now) const {
    return policy_.unseen > 0 && row.version <= now &&
           now - row.version > static_cast<std::uint64_t>(policy_.unseen);
  }
  // The decayed number of steps that listed the row, `now` included.
  float ShowsAfter(const RowHeader& row, std::uint64_t now) const;
  // The number of steps after which memory of evicted rows is worth looking for; 0: never.
  std::uint64_t sweep_every() const;

 private:
  double Decayed(const RowHeader& row, std::uint64_t now) const;

  RowPolicy policy_;
};

}  // namespace penstock::table
