#include "executor/pserver/policies/async_policy.h"

namespace penstock::pserver {

Turn AsyncPolicy::Next(const ChunkLedger& ledger, ChunkId at) const {
  const ChunkAccount& chunk = ledger.chunk(at);
  if (chunk.merged() > 0) return {Turn::Kind::kRun};
  const int trainer = chunk.first_here();
  if (trainer < 0) return {Turn::Kind::kWait};
  return {Turn::Kind::kMerge, trainer};
}

// Once before the first update, and for each step that was counted or is to be counted now.
std::uint64_t AsyncPolicy::RateRuns(const ChunkLedger& ledger, ChunkId) const {
  return 1 + ledger.counts_taken() + (ledger.count_is_due() ? 1 : 0);
}

bool AsyncPolicy::RateMayRun(const ChunkLedger& ledger, std::uint64_t) const {
  return ledger.running_blocks() == 0;
}

// What is answered stands in the chunk's queue behind the update that it waited for, so no copy is needed.
PullAnswer AsyncPolicy::Pull(const ChunkLedger& ledger, ChunkId at, int trainer, std::uint64_t version,
                             bool) const {
  return ledger.chunk(at).applied(trainer) >= version ? PullAnswer::kNewest : PullAnswer::kWait;
}

std::uint64_t AsyncPolicy::WelcomeBelow(const ChunkLedger& ledger, ChunkId at, int trainer) const {
  return ledger.chunk(at).applied(trainer) + ledger.config().window;
}

// A pull tells the trainer, once its gradient is applied. Of a table it may look up nothing.
bool AsyncPolicy::TellsWelcome(const ChunkLedger& ledger, ChunkId at, int trainer) const {
  return ledger.has_rows(at.param) && ledger.chunk(at).last_taken() == trainer;
}

}  // namespace penstock::pserver
