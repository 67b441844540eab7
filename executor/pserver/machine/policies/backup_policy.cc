#include "executor/pserver/machine/policies/backup_policy.h"

namespace penstock::pserver {

void BackupPolicy::Begin(const ChunkLedger& ledger) {
  SyncPolicy::Begin(ledger);
  quorum_.emplace(ledger.trainers(), ledger.config().backup_trainers, ledger.UpdatedChunks());
}

Turn BackupPolicy::Next(const ChunkLedger& ledger, ChunkId at) const {
  const ChunkAccount& chunk = ledger.chunk(at);
  for (int t = 0; t < ledger.trainers(); ++t) {
    if (chunk.here(t) && quorum_->FateOf(t, chunk.taken(t)) == Quorum::Fate::kLate)
      return {Turn::Kind::kDrop, t};
  }
  if (chunk.version() >= quorum_->decided()) return {Turn::Kind::kWait};
  const std::vector<int>& set = quorum_->Of(chunk.version());
  const auto merged = static_cast<std::size_t>(chunk.merged());
  if (merged == set.size()) return {Turn::Kind::kRun};
  return {Turn::Kind::kMerge, set[merged], static_cast<int>(set.size())};
}

// While the block of the next version runs, only a late trainer can request the current one.
PullAnswer BackupPolicy::Pull(const ChunkLedger& ledger, ChunkId at, int trainer, std::uint64_t version,
                              bool) const {
  const ChunkAccount& chunk = ledger.chunk(at);
  const bool there = chunk.version() >= version && chunk.taken(trainer) >= version;
  return there ? PullAnswer::kNewest : PullAnswer::kWait;
}

std::uint64_t BackupPolicy::WelcomeBelow(const ChunkLedger& ledger, ChunkId at, int trainer) const {
  return ledger.chunk(at).taken(trainer) + ledger.config().window;
}

std::vector<int> BackupPolicy::Lacks(const ChunkLedger& ledger, ChunkId at) const {
  const ChunkAccount& chunk = ledger.chunk(at);
  return chunk.running() || chunk.version() < quorum_->decided() ? std::vector<int>() : quorum_->Missing();
}

}  // namespace penstock::pserver
