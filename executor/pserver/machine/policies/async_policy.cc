#include "executor/pserver/machine/policies/async_policy.h"

#include <algorithm>

namespace penstock::pserver {

Turn AsyncPolicy::Next(const ChunkLedger& ledger, ChunkId at) const {
  const ChunkAccount& chunk = ledger.chunk(at);
  if (chunk.merged() > 0) return {Turn::Kind::kRun};
  const int trainer = chunk.first_here();
  if (trainer < 0) return {Turn::Kind::kWait};
  return {Turn::Kind::kMerge, trainer};
}

// Once before the first update, and once for each step that was counted or is due.
std::uint64_t AsyncPolicy::RateRuns(const ChunkLedger& ledger, ChunkId) const {
  return 1 + ledger.counts_taken() + (ledger.count_is_due() ? 1 : 0);
}

bool AsyncPolicy::RateMayRun(const ChunkLedger& ledger, std::uint64_t) const {
  return ledger.running_blocks() == 0;
}

// The answer is queued behind the update that it waited for, so no copy of the chunk is needed.
PullAnswer AsyncPolicy::Pull(const ChunkLedger& ledger, ChunkId at, int trainer, std::uint64_t version,
                             bool) const {
  return ledger.chunk(at).applied(trainer) >= version ? PullAnswer::kNewest : PullAnswer::kWait;
}

std::uint64_t AsyncPolicy::WelcomeBelow(const ChunkLedger& ledger, ChunkId at, int trainer) const {
  return ledger.chunk(at).applied(trainer) + ledger.config().window;
}

// A trainer that pulls in every step may push the next one when its pull is answered. A trainer that does
// not pull may wait for this message alone, because its next step was not welcome when it was last told. Of
// a table it is always told, because it need not look up any rows.
bool AsyncPolicy::TellsWelcome(const ChunkLedger& ledger, ChunkId at, int trainer) const {
  const ChunkAccount& chunk = ledger.chunk(at);
  if (chunk.last_taken() != trainer) return false;
  const std::uint64_t next = std::max(chunk.come(trainer), ledger.trainer(trainer).steps_ended);
  return ledger.has_rows(at.param) || next >= chunk.told(trainer);
}

}  // namespace penstock::pserver
