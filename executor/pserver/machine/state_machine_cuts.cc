// Checkpoints: decisions about when chunks are copied and when the copies are written.
#include <utility>

#include "executor/pserver/machine/state_machine.h"

namespace penstock::pserver {

void StateMachine::Cut(ChunkId at, std::uint64_t step, Actions& out) {
  cut_.Begin(step);
  ++busy_;
  out.emplace_back(CutAction{.param = at.param, .chunk = at.chunk, .step = step});
}

// After an update of the chunk. `all_are_there`: no chunk has a lower version.
void StateMachine::CutIfDue(ChunkId at, bool all_are_there, Actions& out) {
  if (const std::optional<std::uint64_t> step = cut_.StepAt(ledger_.chunk(at).version())) Cut(at, *step, out);
  if (!all_are_there) return;
  const std::optional<std::uint64_t> step = cut_.StepAt(ledger_.low_version());
  if (!step) return;
  // The learning-rate block has not run for the next step, because it waits for all chunks.
  Cut({-1, 0}, *step, out);
  for (const ChunkId& held : ledger_.AllChunks()) {
    if (IsStart(held.param) && !ledger_.chunk(held).awaited()) Cut(held, *step, out);
  }
  cut_.ReachedByAll();
}

void StateMachine::CutCopied(Actions& out) {
  --busy_;
  cut_.End();
  if (ended_ || !cut_.whole()) return;
  ++busy_;
  out.emplace_back(WriteCutAction{cut_.step()});
}

void StateMachine::CutWritten(const Status& status, Actions& out) {
  if (ended_) return;
  if (!status.ok()) return Fail(status, out);
  --busy_;
  cut_.Close();
  for (const ChunkId& at : std::exchange(wait_for_cut_, {})) StartBlock(at, out);
  EndIfDrained(out);
}

}  // namespace penstock::pserver
