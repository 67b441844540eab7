// Asynchronous training: every gradient of a trainer is an update of its own, as it comes.
//
// Promise, for each chunk: a trainer reads what it wrote (a pull of version v has all its gradients of steps
// below v in it, and whatever others have sent meanwhile); a pull is the chunk between two updates, never in
// the middle of one; each gradient is applied once, a trainer's in the order of its steps, those of different
// trainers in the order in which they came. So a trainer that is alone trains as on one machine, to the bit.
// How far trainers are apart is not bounded (staleness_policy.h does that); each may push `window` steps
// beyond what was applied of it, so the server holds no more gradients of a trainer than that. A trainer that
// has completed counts no more; one that dies ends the job.
//
// A learning-rate schedule counts the steps that trainers tell of. Each is counted once, when that step's
// gradients are applied here; the block runs while no update does. An update uses the rate that there is when
// it begins.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/pserver/update_policy.h"

namespace penstock::pserver {

class AsyncPolicy : public UpdatePolicy {
 public:
  Turn Next(const ChunkLedger& ledger, ChunkId at) const override;
  std::uint64_t RateRuns(const ChunkLedger& ledger, ChunkId at) const override;
  bool RateMayRun(const ChunkLedger& ledger, std::uint64_t runs) const override;
  PullAnswer Pull(const ChunkLedger& ledger, ChunkId at, int trainer, std::uint64_t version,
                  bool readable) const override;
  std::uint64_t WelcomeBelow(const ChunkLedger& ledger, ChunkId at, int trainer) const override;
  bool TellsWelcome(const ChunkLedger& ledger, ChunkId at, int trainer) const override;
  bool MergesInTurn() const override { return false; }
  bool StepsAreWhole() const override { return false; }
  std::vector<int> Lacks(const ChunkLedger&, ChunkId) const override { return {}; }
  bool CountsTheCompleted() const override { return false; }
};

}  // namespace penstock::pserver
