// Bounded staleness: asynchronous training in which a trainer waits for those that are too far behind.
//
// Promise: what a trainer computes step v from has all gradients of steps below v - staleness of all
// trainers that have not completed, and its own of steps below v; beyond that, what AsyncPolicy promises.
// With a staleness of 0 everybody waits for everybody, as in synchronous training, but each gradient is an
// update of its own, so the bytes depend on timing.
#pragma once

#include <vector>

#include "executor/pserver/policies/async_policy.h"

namespace penstock::pserver {

class StalenessPolicy : public AsyncPolicy {
 public:
  explicit StalenessPolicy(int staleness) : staleness_(static_cast<std::uint64_t>(staleness)) {}

  PullAnswer Pull(const ChunkLedger& ledger, ChunkId at, int trainer, std::uint64_t version,
                  bool readable) const override;
  // Those for which the trainer that is farthest ahead waits.
  std::vector<int> Lacks(const ChunkLedger& ledger, ChunkId at) const override;

 private:
  // Trainers for which a pull of the version waits.
  std::vector<int> Behind(const ChunkLedger& ledger, ChunkId at, std::uint64_t version) const;

  const std::uint64_t staleness_;
};

}  // namespace penstock::pserver
