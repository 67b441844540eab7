// Checkpoints: decisions about when chunks are copied and when the copies are written.
#include <algorithm>
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
  if (by_trainer()) return CutIfReached(at, out);
  if (ledger_.config().cuts_keys) {
    CutKeyIfReached(at, out);
    return WriteKeysIfWhole(out);
  }
  if (const std::optional<std::uint64_t> step = cut_.StepAt(ledger_.chunk(at).version())) Cut(at, *step, out);
  if (!all_are_there) return;
  if (const std::optional<std::uint64_t> step = cut_.StepAt(ledger_.low_version())) CutTheRest(*step, out);
}

// All chunks have the step's version, and the learning-rate block has not run for the next step. What no
// update changes is copied with the last chunk.
void StateMachine::CutTheRest(std::uint64_t step, Actions& out) {
  Cut({-1, 0}, step, out);
  for (const ChunkId& held : ledger_.AllChunks()) {
    // The copy of one that is being stored waits for that.
    if (IsStart(held.param) && (!ledger_.chunk(held).awaited() || ledger_.chunk(held).merging()))
      Cut(held, step, out);
  }
  cut_.ReachedByAll();
}

// A server that updates nothing has a part too: the checkpoint would not be whole without it.
void StateMachine::CutIfIdle(Actions& out) {
  if (ledger_.UpdatedChunks() > 0 || by_trainer()) return;
  std::uint64_t ended = 0;
  bool first = true;
  for (int t = 0; t < ledger_.config().trainers; ++t) {
    const TrainerAccount& trainer = ledger_.trainer(t);
    if (trainer.completed) continue;
    ended = std::exchange(first, false) ? trainer.steps_ended : std::min(ended, trainer.steps_ended);
  }
  while (idle_steps_ < ended && !cut_.open()) {
    if (const std::optional<std::uint64_t> step = cut_.StepAt(++idle_steps_)) CutTheRest(*step, out);
  }
}

std::uint64_t StateMachine::steps_begun() const {
  if (by_trainer()) {
    const std::uint64_t low = LowStep();
    return low - std::min(low, ledger_.config().first_step);
  }
  // The learning rate and the norms of a step are computed before its updates.
  std::uint64_t begun = std::max(rate_runs_ + (rate_running_ ? 1 : 0), sums_.begun());
  for (const ChunkId& at : ledger_.AllChunks()) {
    const ChunkAccount& chunk = ledger_.chunk(at);
    begun = std::max(begun, chunk.version() + (chunk.running() ? 1 : 0));
  }
  return begun;
}

// Keys have no common step: a job of keys stops at the last checkpoint that some server has begun.
std::uint64_t StateMachine::HoldUpdates(std::uint64_t ahead) {
  if (ledger_.config().cuts_keys) {
    const std::uint64_t begun = cut_.open() ? cut_.step() : key_cuts_.last();
    key_cuts_.Limit(begun, false);
    return begun - ledger_.config().first_cut;
  }
  if (by_trainer()) {
    vector_.BeginAgreement();
    if (ahead == 0) holds_updates_ = true;
    const std::uint64_t low = LowStep();
    return low == 0 ? 0 : std::max(low, vector_.last() + 1) + ahead - ledger_.config().first_step;
  }
  const std::uint64_t limit = steps_begun() + ahead;
  cut_.Limit(limit);
  return limit;
}

bool StateMachine::CutAt(std::uint64_t version, Actions& out) {
  if (ended_) return true;
  if (by_trainer()) {
    if (vector_.open()) return false;
    vector_.Agree(version + ledger_.config().first_step);
    CutVectorIfDue(out);
    return true;
  }
  if (cut_.open()) return false;
  cut_.Limit(std::nullopt);
  if (version > durable_version_) {  // else this server was started again, and has it
    cut_.Agree(version);
    CutThoseAt(version, out);
  }
  for (const ChunkId& at : std::exchange(wait_for_cut_, {})) StartBlock(at, out);
  return true;
}

// Begins a checkpoint that was planned when chunks had its version already.
void StateMachine::CutThoseAt(std::uint64_t version, Actions& out) {
  const std::uint64_t step = cut_.StepOf(version);
  if (ledger_.UpdatedChunks() == 0) {
    if (idle_steps_ >= version) CutTheRest(step, out);
    return;
  }
  for (const ChunkId& at : ledger_.AllChunks()) {
    if (!IsStart(at.param) && ledger_.chunk(at).version() == version) Cut(at, step, out);
  }
  if (ledger_.low_version() == version) CutTheRest(step, out);
}

void StateMachine::StopAt(std::uint64_t version, Actions& out) {
  if (ended_) return;
  if (ledger_.config().cuts_keys) {
    key_cuts_.Limit(version + ledger_.config().first_cut, true);
    CutKeysIfDue(out);
    for (const ChunkId& at : std::exchange(wait_for_cut_, {})) StartBlock(at, out);
    return;
  }
  if (by_trainer()) {
    holds_updates_ = true;
    vector_.Agree(version + ledger_.config().first_step);
    if (version > 0) stop_at_ = version + ledger_.config().first_step;
    return CutVectorIfDue(out);
  }
  cut_.Limit(version);
  if (version > 0) stop_at_ = version;
  for (const ChunkId& at : std::exchange(wait_for_cut_, {})) StartBlock(at, out);
  CutIfStopped(out);
}

// All chunks stay in the version of the stop, so they are copied together, unless they were when they
// reached it: one checkpoint is made of a step.
void StateMachine::CutIfStopped(Actions& out) {
  if (!stop_at_ || cut_.open() || by_trainer()) return;
  const bool idle = ledger_.UpdatedChunks() == 0;
  if (!idle && ledger_.low_version() < *stop_at_) return;
  const std::uint64_t version = *std::exchange(stop_at_, std::nullopt);
  // One ahead of the interval may be written, too.
  const bool made =
      version <= durable_version_ || (cut_.StepAt(version) && (!idle || idle_steps_ >= version));
  idle_steps_ = std::max(idle_steps_, version);
  if (made) return;
  const std::uint64_t step = cut_.StepOf(version);
  for (const ChunkId& at : ledger_.AllChunks()) {
    if (!IsStart(at.param)) Cut(at, step, out);
  }
  CutTheRest(step, out);
}

void StateMachine::RequestCut(int trainer, std::uint64_t step, Actions& out) {
  if (ended_) return;
  if (by_trainer()) {
    vector_.asked.insert(trainer);
    CutVectorIfDue(out);
  } else {
    PlanCut(std::min(step, ledger_.trainer(trainer).steps_ended), out);
  }
  out.emplace_back(ReplyAction{trainer, protocol::Durable{}});
}

// Makes a checkpoint of this version, or of the first one that is still possible. The trainer may be unable
// to go on before it is made. So may others, and each of them has sent the steps below the first possible
// version, because no chunk gets further without all trainers.
void StateMachine::PlanCut(std::uint64_t version, Actions& out) {
  if (by_trainer()) {
    if (!vector_.open()) vector_.Plan();
    return CutVectorIfDue(out);
  }
  if (!cut_.makes_any() || cut_.open() || version <= durable_version_) return;
  std::uint64_t first = std::max(durable_version_ + 1, rate_runs_ + (rate_running_ ? 1 : 0));
  for (const ChunkId& at : ledger_.AllChunks()) {
    const ChunkAccount& chunk = ledger_.chunk(at);
    if (!IsStart(at.param)) first = std::max(first, chunk.version() + (chunk.running() ? 1 : 0));
  }
  version = std::max(version, first);
  if (cut_.HasOneIn(first, version)) return;
  CutThoseAt(cut_.Plan(version), out);
}

void StateMachine::CutCopied(Actions& out) {
  --busy_;
  cut_.End();
  if (ended_ || !cut_.whole()) return;
  ++busy_;
  if (!by_trainer() && !ledger_.config().cuts_keys) vector_.write.step = cut_.step();
  out.emplace_back(vector_.write);
}

void StateMachine::CutWritten(const Status& status, Actions& out) {
  if (ended_) return;
  if (!status.ok()) return Fail(status, out);
  --busy_;
  const bool of_keys = ledger_.config().cuts_keys;
  if (!by_trainer() && !of_keys) durable_version_ = cut_.step() - ledger_.config().first_step;
  cut_.Close();
  if (of_keys) KeysWritten(out);
  if (by_trainer()) VectorWritten(out);
  for (int t = 0; ledger_.config().recovers && t < ledger_.trainers(); ++t)
    out.emplace_back(ReplyAction{t, protocol::Durable{}});
  for (const ChunkId& at : std::exchange(wait_for_cut_, {})) StartBlock(at, out);
  CutIfStopped(out);
  CutIfIdle(out);
  EndIfDrained(out);
}

bool StateMachine::HasCaughtUp() const {
  if (by_trainer()) return HasCaughtUpByTrainer();
  for (int t = 0; t < ledger_.trainers(); ++t)
    if (ledger_.trainer(t).steps_ended < ledger_.trainer(t).step_at_hello) return false;
  std::uint64_t least = ledger_.trainer(0).step_at_hello;
  for (int t = 1; t < ledger_.trainers(); ++t) least = std::min(least, ledger_.trainer(t).step_at_hello);
  return ledger_.low_version() >= least || ledger_.UpdatedChunks() == 0;
}

}  // namespace penstock::pserver
