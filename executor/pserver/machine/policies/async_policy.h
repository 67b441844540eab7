// Asynchronous training: each gradient of a trainer is an update by itself, applied as it comes.
//
// Promise, for each chunk: a trainer reads what it wrote (a pull of version v includes all its gradients of
// steps below v, and whatever others have sent so far); a pull returns the chunk between two updates, never
// in the middle of one; each gradient is applied once, a trainer's in the order of its steps, those of
// different trainers in the order of arrival. A single trainer thus gets the bytes of training on one
// machine. The distance between trainers is not bounded (staleness_policy.h does that); each may push
// `window` steps beyond its last applied one, which limits the gradients that the server holds. A trainer
// that has completed no longer counts; one that dies ends the job.
//
// A learning-rate schedule counts the steps that trainers report. Each is counted once, when that step's
// gradients have been applied here; the block runs while no update does. An update uses the rate at the time
// when it begins.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/pserver/machine/update_policy.h"

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
