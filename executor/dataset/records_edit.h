// Rewrites instances in memory: shuffles the numbers of some slots among instances, and merges instances of
// one id.
//
//   Records shuffled = ShuffleSlots(format, records, {"user"}, 10000, seed);
//   Records merged = MergeById(format, records, 2, dropped);
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "executor/dataset/records.h"

namespace penstock::dataset {

// Returns a copy of the instances in which the numbers of `slots` are those of other instances, so that a
// model's loss shows how much it depends on these slots. Each instance takes them from an instance drawn from
// a sample of at most `candidates` of the instances before it and itself (reservoir sampling), as Fluid's
// slots_shuffle. `slots` are used slots; `candidates` is at least 1. Deterministic.
Records ShuffleSlots(const Format& format, const Records& records, const std::set<std::string>& slots,
                     std::size_t candidates, std::uint64_t seed);

// The instances of an id that MergeById has dropped, and why.
struct Dropped {
  std::string id;
  std::size_t instances = 0;
  std::string slot;  // in which two of them have numbers; empty: their number is not the one asked for
};

// Merges the instances of each id into one, in the order of the ids: a slot's numbers come from the instance
// that has some. Numbers of a dense slot that are all zero count as none. Drops the instances of an id if
// there are not `size` of them (0: any number), or if a slot has numbers in two of them. As Fluid's
// merge_by_lineid. Instances of one id keep the order of `records`.
Records MergeById(const Format& format, const Records& records, std::size_t size,
                  std::vector<Dropped>& dropped);

}  // namespace penstock::dataset
