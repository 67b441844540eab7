// Synchronous training with b backup trainers (backup_trainers = b): a step uses the gradients of N - b
// trainers, and drops those that come late.
//
// Promise: version v+1 of all chunks of a server is version v updated with the mean of the gradients of the
// first N - b trainers whose gradients of the step were all here, merged in trainer order; so the bytes
// depend only on which trainers those were. Every merged gradient was computed from version v of all these
// chunks. Gradients of other trainers for v are acknowledged, dropped and counted per step. The server
// reports the counts when the job ends.
//
// A trainer that is late by some steps goes on with the newest version: its pull of version v gets v or a
// later one, as soon as its own gradients of steps below v are merged or dropped. Its step s still counts for
// version s, so it stays late until it has caught up, which needs no waiting. A trainer that completes is
// absent, not late: it is not waited for; if fewer than N - b are left, all of them make a version. One that
// dies ends the job. If trainers set initial values, the first step waits for all.
//
// A server keeps the gradients of a step until it is decided: up to N of each parameter, and from each
// trainer those of at most `window` steps.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "executor/pserver/machine/policies/quorum.h"
#include "executor/pserver/machine/policies/sync_policy.h"

namespace penstock::pserver {

// The ledger's config gives the number of backup trainers.
class BackupPolicy final : public SyncPolicy {
 public:
  void Begin(const ChunkLedger& ledger) override;
  bool Came(int trainer, std::uint64_t step) override { return quorum_->Came(trainer, step); }
  void LowVersionRose(const ChunkLedger& ledger) override { quorum_->Forget(ledger.low_version()); }
  void Completed(int trainer) override { quorum_->Left(trainer); }
  Turn Next(const ChunkLedger& ledger, ChunkId at) const override;
  PullAnswer Pull(const ChunkLedger& ledger, ChunkId at, int trainer, std::uint64_t version,
                  bool readable) const override;
  std::uint64_t WelcomeBelow(const ChunkLedger& ledger, ChunkId at, int trainer) const override;
  bool MergesInTurn() const override { return false; }
  std::vector<int> Lacks(const ChunkLedger& ledger, ChunkId at) const override;
  bool CountsTheCompleted() const override { return false; }
  std::uint64_t LateSteps(int trainer) const override { return quorum_->late_steps(trainer); }

 private:
  std::optional<Quorum> quorum_;
};

}  // namespace penstock::pserver
