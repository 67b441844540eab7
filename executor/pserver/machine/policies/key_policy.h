// The keys of a key-value store. A key's steps count the pushes of each worker: they belong to the key, not
// to the job, so keys are independent of each other.
//
// Rounds: update r of a key is made when each worker has pushed it r times, from its r-th pushes, in the
// order of the workers. A worker that pushes twice waits for the others in the second round; one that has
// completed, or whom the others go on without, brings zeros. A pull by a worker that has pushed n times waits
// for round n and gets no later one; one that has not pushed gets the last whole round at once.
//
// Turns (MachineConfig::Param::turns): each push is an update by itself, as in async_policy.h.
#pragma once

#include <vector>

#include "executor/pserver/machine/policies/async_policy.h"

namespace penstock::pserver {

class KeyPolicy : public UpdatePolicy {
 public:
  Turn Next(const ChunkLedger& ledger, ChunkId at) const override;
  std::uint64_t RateRuns(const ChunkLedger&, ChunkId) const override {
    return 0;
  }  // keys have no block for it
  bool RateMayRun(const ChunkLedger&, std::uint64_t) const override { return false; }
  PullAnswer Pull(const ChunkLedger& ledger, ChunkId at, int trainer, std::uint64_t version,
                  bool readable) const override;
  std::uint64_t WelcomeBelow(const ChunkLedger& ledger, ChunkId at, int trainer) const override;
  bool TellsWelcome(const ChunkLedger& ledger, ChunkId at, int trainer) const override;
  bool MergesInTurn() const override { return false; }
  bool StepsAreWhole() const override { return false; }
  std::vector<int> Lacks(const ChunkLedger& ledger, ChunkId at) const override;
  bool CountsTheCompleted() const override { return false; }

 private:
  AsyncPolicy turns_;
};

}  // namespace penstock::pserver
