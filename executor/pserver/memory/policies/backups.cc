#include "executor/pserver/memory/policies/backups.h"

#include <utility>

namespace penstock::pserver {

Backups::Backups(std::vector<Tensor> rows, Tensor whose) : whose_(std::move(whose)) {
  for (Tensor& of_trainer : rows) kept_.push_back({.rows = std::move(of_trainer)});
}

std::uint64_t Backups::Keep(int trainer, std::uint64_t version, const Tensor& now, std::uint64_t updates) {
  Kept& kept = kept_[static_cast<std::size_t>(trainer)];
  if (kept.version && version <= *kept.version) return kept.updates;  // a repeat, perhaps a late one
  kept.rows.CopyFrom(now);
  kept.version = version;
  kept.updates = updates;
  return updates;
}

void Backups::Reset(const Tensor& value) {
  for (Kept& kept : kept_) kept.rows.CopyFrom(value);
}

}  // namespace penstock::pserver
