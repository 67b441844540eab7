// Checkpoints of keys: when each chunk has the round of the cut, and when all have (key_cuts.h).
#include <algorithm>
#include <utility>

#include "executor/pserver/machine/state_machine.h"

namespace penstock::pserver {

void StateMachine::CutKeys(int worker, std::uint64_t name, const KeyCuts::Pushes& pushes, Actions& out) {
  if (ended_ || key_cuts_.Knows(worker, name)) return;
  for (const auto& [param, count] : pushes) {
    const std::uint64_t taken = ledger_.chunk({param, 0}).taken(worker);
    if (taken <= count || completed(worker)) continue;
    return Fail(FailedPrecondition("E-rpc-keys", "worker ", worker, " names ", count, " pushes of ",
                                   ledger_.param(param).name, " at cut ", name, ", and has made ", taken),
                out);
  }
  key_cuts_.Announce(worker, name, pushes);
  CutKeysIfDue(out);
}

bool StateMachine::IsInKeyCuts(int param) const {
  return ledger_.param(param).is_key && !ledger_.param(param).by_id;
}

// The round of the cut is known from the first worker that has come to it on: the others, which are not
// there yet, have pushed no less.
void StateMachine::CutKeyIfReached(ChunkId at, Actions& out) {
  if (!IsInKeyCuts(at.param) || key_cuts_.is_copied(at) || key_cut_is_whole_) return;
  const std::optional<std::uint64_t> round = key_cuts_.RoundOf(at.param);
  const ChunkAccount& chunk = ledger_.chunk(at);
  if (!round || chunk.version() != *round || chunk.awaited() || chunk.loading() || chunk.running()) return;
  key_cuts_.Copied(at);
  Cut(at, *key_cuts_.next(), out);
}

void StateMachine::CutKeysIfDue(Actions& out) {
  if (!ledger_.config().cuts_keys || ended_ || key_cut_is_whole_ || !key_cuts_.next()) return;
  for (const ChunkId& at : ledger_.AllChunks()) CutKeyIfReached(at, out);
  WriteKeysIfWhole(out);
}

void StateMachine::WriteKeysIfWhole(Actions& out) {
  if (key_cut_is_whole_ || !key_cuts_.next()) return;
  if (!key_cuts_.HaveAllCome([this](int worker) { return gone(worker); })) return;
  WriteCutAction write{.step = *key_cuts_.next()};
  for (const ChunkId& at : ledger_.AllChunks()) {
    if (!IsInKeyCuts(at.param) || !key_cuts_.RoundOf(at.param)) continue;
    if (!key_cuts_.is_copied(at)) return;
    if (at.chunk == 0) write.params.push_back(at.param);
  }
  vector_.write = std::move(write);
  key_cut_is_whole_ = true;
  Cut({-1, 0}, vector_.write.step, out);  // of a server without keys, too
  cut_.ReachedByAll();
}

void StateMachine::KeysWritten(Actions& out) {
  key_cut_is_whole_ = false;
  key_cuts_.Close();
  CutKeysIfDue(out);
}

}  // namespace penstock::pserver
