#include "executor/pserver/machine/policies/key_policy.h"

namespace penstock::pserver {
namespace {

bool IsGone(const ChunkLedger& ledger, int worker) {
  return ledger.trainer(worker).completed || ledger.trainer(worker).lost;
}

}  // namespace

Turn KeyPolicy::Next(const ChunkLedger& ledger, ChunkId at) const {
  if (ledger.param(at.param).turns) return turns_.Next(ledger, at);
  const ChunkAccount& chunk = ledger.chunk(at);
  const int worker = chunk.merged();
  if (worker == ledger.trainers()) return {Turn::Kind::kRun};
  if (chunk.here(worker)) return {Turn::Kind::kMerge, worker};
  // A round in which nobody takes part does not happen.
  const bool begins = chunk.fed() || chunk.has_ahead();
  return {begins && IsGone(ledger, worker) ? Turn::Kind::kZeros : Turn::Kind::kWait, worker};
}

// The version that is there is exactly the requested one if the worker has pushed that often: the next round
// needs its next push. It is sent as that version, so every copy of a part has the same bytes.
PullAnswer KeyPolicy::Pull(const ChunkLedger& ledger, ChunkId at, int trainer, std::uint64_t version,
                           bool readable) const {
  if (ledger.param(at.param).turns) return turns_.Pull(ledger, at, trainer, version, readable);
  const std::uint64_t there = ledger.chunk(at).version();
  if (there < version) return PullAnswer::kWait;
  // The memory keeps the last version: a new process may begin one push behind, because another server has
  // not had the last push of the process before it.
  if (ledger.config().trainer_loss == TrainerLoss::kWait && there <= version + 1) return PullAnswer::kNow;
  return there == version && readable ? PullAnswer::kNow : PullAnswer::kNewest;
}

std::uint64_t KeyPolicy::WelcomeBelow(const ChunkLedger& ledger, ChunkId at, int trainer) const {
  if (ledger.param(at.param).turns) return turns_.WelcomeBelow(ledger, at, trainer);
  return ledger.chunk(at).version() + ledger.config().window;
}

// A worker that does not pull waits for this message alone.
bool KeyPolicy::TellsWelcome(const ChunkLedger& ledger, ChunkId at, int trainer) const {
  if (ledger.param(at.param).turns) return turns_.TellsWelcome(ledger, at, trainer);
  const ChunkAccount& chunk = ledger.chunk(at);
  return chunk.come(trainer) >= chunk.told(trainer);
}

std::vector<int> KeyPolicy::Lacks(const ChunkLedger& ledger, ChunkId at) const {
  const ChunkAccount& chunk = ledger.chunk(at);
  std::vector<int> lacking;
  if (chunk.running() || ledger.param(at.param).turns) return lacking;
  for (int t = 0; t < ledger.trainers(); ++t) {
    const bool came = chunk.taken(t) > chunk.version() || chunk.here(t);
    if (!came && !IsGone(ledger, t)) lacking.push_back(t);
  }
  return lacking;
}

}  // namespace penstock::pserver
