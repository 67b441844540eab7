#include "executor/pserver/machine/policies/staleness_policy.h"

#include <algorithm>

namespace penstock::pserver {

std::vector<int> StalenessPolicy::Behind(const ChunkLedger& ledger, ChunkId at, std::uint64_t version) const {
  std::vector<int> behind;
  for (int t = 0; t < ledger.trainers(); ++t) {
    if (!ledger.trainer(t).completed && version > ledger.chunk(at).applied(t) + staleness_)
      behind.push_back(t);
  }
  return behind;
}

PullAnswer StalenessPolicy::Pull(const ChunkLedger& ledger, ChunkId at, int trainer, std::uint64_t version,
                                 bool readable) const {
  if (!Behind(ledger, at, version).empty()) return PullAnswer::kWait;
  return AsyncPolicy::Pull(ledger, at, trainer, version, readable);
}

std::vector<int> StalenessPolicy::Lacks(const ChunkLedger& ledger, ChunkId at) const {
  std::uint64_t farthest = 0;
  for (int t = 0; t < ledger.trainers(); ++t) farthest = std::max(farthest, ledger.chunk(at).applied(t));
  return Behind(ledger, at, farthest);
}

}  // namespace penstock::pserver
