// Bounded staleness: asynchronous training in which a trainer waits for others that are too far behind.
//
// Promise: a trainer computes step v from parameters that include all gradients of steps below v - staleness
// of all trainers that have not completed, and its own of steps below v; otherwise as AsyncPolicy. With a
// staleness of 0 all trainers wait for each other, as in synchronous training, but each gradient is an update
// by itself, so the bytes depend on timing.
#pragma once

#include <vector>

#include "executor/pserver/machine/policies/async_policy.h"

namespace penstock::pserver {

class StalenessPolicy : public AsyncPolicy {
 public:
  explicit StalenessPolicy(int staleness) : staleness_(static_cast<std::uint64_t>(staleness)) {}

  PullAnswer Pull(const ChunkLedger& ledger, ChunkId at, int trainer, std::uint64_t version,
                  bool readable) const override;
  // The trainers for which the most advanced trainer waits.
  std::vector<int> Lacks(const ChunkLedger& ledger, ChunkId at) const override;

 private:
  // The trainers for which a pull of the version waits.
  std::vector<int> Behind(const ChunkLedger& ledger, ChunkId at, std::uint64_t version) const;

  const std::uint64_t staleness_;
};

}  // namespace penstock::pserver
