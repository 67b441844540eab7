#include "transpiler/check/facts/rank_ops.h"

#include <algorithm>

namespace penstock::check {

ViewSet AddedUp(const Program& main) {
  ViewSet added;
  for (int b = 0; b < main.block_count(); ++b) {
    for (const OpEntry& entry : main.block(b).ops()) {
      if (AddsUp(*entry.op)) added.insert(entry.op->InputName("X"));
    }
  }
  return added;
}

RankOps::RankOps(const Block& block) : ops_(static_cast<int>(block.ops().size())) {
  for (const OpEntry& entry : block.ops()) {
    if (IsCollective(*entry.op)) uses_[entry.op->InputName("X")];
  }
  int at = 0;
  for (const OpEntry& entry : block.ops()) {
    const Op& op = *entry.op;
    const auto note = [&](const Slot& slot, bool Use::*how) {
      for (const std::string& name : slot.args) {
        const auto found = uses_.find(name);
        if (found == uses_.end()) continue;
        std::vector<Use>& uses = found->second;
        if (uses.empty() || uses.back().at != at) uses.push_back({.at = at, .op = &op});
        uses.back().*how = true;
      }
    };
    for (const Slot& slot : op.inputs()) note(slot, &Use::reads);
    for (const Slot& slot : op.outputs()) note(slot, &Use::writes);
    if (AwaitsComputation(op)) computation_.push_back(at);
    if (AwaitsRing(op)) rings_[RingOf(op)].push_back(at);
    ++at;
  }
}

std::span<const RankOps::Use> RankOps::UsesOf(std::string_view name) const {
  const auto found = uses_.find(name);
  return found == uses_.end() ? std::span<const Use>() : found->second;
}

int RankOps::AwaitedBefore(int at) const {
  const auto next = std::lower_bound(computation_.begin(), computation_.end(), at);
  return next == computation_.begin() ? -1 : *std::prev(next);
}

int RankOps::RingAwaitedAfter(int ring, int at) const {
  const auto waits = rings_.find(ring);
  if (waits == rings_.end()) return ops_;
  const auto next = std::upper_bound(waits->second.begin(), waits->second.end(), at);
  return next == waits->second.end() ? ops_ : *next;
}

}  // namespace penstock::check
