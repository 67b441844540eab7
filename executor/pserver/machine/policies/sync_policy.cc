#include "executor/pserver/machine/policies/sync_policy.h"

namespace penstock::pserver {

void SyncPolicy::Begin(const ChunkLedger& ledger) { turns_.emplace(ledger.config()); }

void SyncPolicy::TurnEnds(const ChunkLedger& ledger, ChunkId at) {
  const ChunkAccount& chunk = ledger.chunk(at);
  if (ledger.param(at.param).by_turn) turns_->Merged(at, chunk.merged(), chunk.version(), chunk.bytes());
}

std::vector<Grant> SyncPolicy::Grants(const ChunkLedger& ledger, int param) {
  return ledger.param(param).by_turn ? turns_->Give(ledger, param) : std::vector<Grant>();
}

Turn SyncPolicy::Next(const ChunkLedger& ledger, ChunkId at) const {
  const ChunkAccount& chunk = ledger.chunk(at);
  const int trainer = chunk.merged();
  if (trainer == ledger.trainers()) return {Turn::Kind::kRun};
  // A step in which no trainer takes part does not happen, unless one begins after it. Nothing stands for the
  // gradient of a lost trainer before another one begins the step.
  const auto is_idle = [&] {
    const bool absent = ledger.NobodyIsLeft() || ledger.IsMissing(trainer, chunk.version());
    return absent && !ledger.BeginsAfter(chunk.version());
  };
  if (!chunk.fed() && !chunk.has_ahead() && is_idle()) return {Turn::Kind::kWait};
  if (chunk.here(trainer)) return {Turn::Kind::kMerge, trainer};
  return {ledger.IsAbsent(trainer, chunk.version()) ? Turn::Kind::kZeros : Turn::Kind::kWait, trainer};
}

std::uint64_t SyncPolicy::RateRuns(const ChunkLedger& ledger, ChunkId at) const {
  return ledger.chunk(at).version() + 1;
}

// The rate of the previous step is in use until every chunk has been updated for that step.
bool SyncPolicy::RateMayRun(const ChunkLedger& ledger, std::uint64_t runs) const {
  return ledger.low_version() >= runs;
}

PullAnswer SyncPolicy::Pull(const ChunkLedger& ledger, ChunkId at, int, std::uint64_t version,
                            bool readable) const {
  const std::uint64_t there = ledger.chunk(at).version();
  if (version > there) return PullAnswer::kWait;
  // The memory keeps the last version, also while a block runs: a trainer that returns may begin with it. A
  // checkpoint does not have it.
  if (version < ledger.config().first_version) return PullAnswer::kGone;
  if (ledger.config().trainer_loss == TrainerLoss::kWait)
    return version + 1 >= there ? PullAnswer::kNow : PullAnswer::kGone;
  // A trainer that requests the version that a block is overwriting has already sent its gradient of that
  // step; it should have pulled before.
  return version == there && readable ? PullAnswer::kNow : PullAnswer::kGone;
}

std::uint64_t SyncPolicy::WelcomeBelow(const ChunkLedger& ledger, ChunkId at, int trainer) const {
  const std::uint64_t version = ledger.chunk(at).version();
  if (!ledger.param(at.param).by_turn) return version + ledger.config().window;
  return trainer == 0 ? version + 1 : turns_->Below(at, trainer);
}

// A trainer that pulls every version of a param may push the next step when its pull is answered: the chunk
// then has that version. A trainer may look up no rows of a table and get ahead of its version; the answer
// to its last push then leaves it without credit, and only this message gives it more. Of a param pushed by
// turn, trainer 0's next turn begins with the new version.
bool SyncPolicy::TellsWelcome(const ChunkLedger& ledger, ChunkId at, int trainer) const {
  return ledger.has_rows(at.param) || (ledger.param(at.param).by_turn && trainer == 0);
}

std::vector<int> SyncPolicy::Lacks(const ChunkLedger& ledger, ChunkId at) const {
  std::vector<int> lacking = LacksItself(ledger, at);
  const ChunkAccount& chunk = ledger.chunk(at);
  if (!ledger.param(at.param).by_turn || chunk.merging() || chunk.running()) return lacking;
  // If it lacks none, its next trainer waits for early bytes that another chunk occupies.
  for (const ChunkId& other : ledger.AllChunks()) {
    if (!lacking.empty()) break;
    if (ledger.param(other.param).by_turn && ledger.chunk(other).version() <= chunk.version())
      lacking = LacksItself(ledger, other);
  }
  return lacking;
}

std::vector<int> SyncPolicy::LacksItself(const ChunkLedger& ledger, ChunkId at) const {
  const ChunkAccount& chunk = ledger.chunk(at);
  std::vector<int> lacking;
  if (chunk.running()) return lacking;
  for (int t = 0; t < ledger.trainers(); ++t) {
    const bool came = chunk.taken(t) > chunk.version() || chunk.here(t);
    // A trainer that may not push yet waits itself, for earlier turns.
    if (WelcomeBelow(ledger, at, t) <= chunk.version()) continue;
    if (!came && !ledger.IsAbsent(t, chunk.version())) lacking.push_back(t);
  }
  return lacking;
}

}  // namespace penstock::pserver
