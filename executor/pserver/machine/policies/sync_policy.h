// Synchronous training: version v+1 of a chunk is version v updated by all trainers' gradients of step v.
//
// Promise: N trainers compute what one would on their joined batches, up to the order of floating-point sums;
// and every run gives the same bytes, because trainer t's gradient is merged after those of 0..t-1, whichever
// comes first. A pull of step k gets version k and no other. There is no barrier across chunks, but only one
// value of the learning-rate schedule is in use at a time. A trainer that has completed counts as zero
// gradients in the steps after that, as in Fluid. One that dies ends the job, is waited for, or is left out
// of the mean until it returns (TrainerLoss). Params by turn are pushed when turn_credit.h says so.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "executor/pserver/machine/policies/turn_credit.h"
#include "executor/pserver/machine/update_policy.h"

namespace penstock::pserver {

class SyncPolicy : public UpdatePolicy {
 public:
  void Begin(const ChunkLedger& ledger) override;
  void TurnEnds(const ChunkLedger& ledger, ChunkId at) override;
  std::vector<Grant> Grants(const ChunkLedger& ledger, int param) override;
  Turn Next(const ChunkLedger& ledger, ChunkId at) const override;
  std::uint64_t RateRuns(const ChunkLedger& ledger, ChunkId at) const override;
  bool RateMayRun(const ChunkLedger& ledger, std::uint64_t runs) const override;
  PullAnswer Pull(const ChunkLedger& ledger, ChunkId at, int trainer, std::uint64_t version,
                  bool readable) const override;
  std::uint64_t WelcomeBelow(const ChunkLedger& ledger, ChunkId at, int trainer) const override;
  bool TellsWelcome(const ChunkLedger& ledger, ChunkId at, int trainer) const override;
  bool MergesInTurn() const override { return true; }
  bool StepsAreWhole() const override { return true; }
  std::vector<int> Lacks(const ChunkLedger& ledger, ChunkId at) const override;
  bool CountsTheCompleted() const override { return true; }

 private:
  std::vector<int> LacksItself(const ChunkLedger& ledger, ChunkId at) const;

  std::optional<TurnCredit> turns_;  // of params by turn
};

}  // namespace penstock::pserver
