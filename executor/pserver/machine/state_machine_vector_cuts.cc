// Checkpoints of asynchronous training, where trainers have no common step: which steps a part has, and when
// chunks have them (ARCHITECTURE.md, "A checkpoint of asynchronous training").
#include <algorithm>
#include <utility>

#include "executor/pserver/machine/state_machine.h"

namespace penstock::pserver {

// The trainer's steps that it has ended, and of which it has sent what it has: the end of a step may come
// before gradients for which its log has no room.
std::uint64_t StateMachine::StepsToBeIn(int trainer) const {
  const TrainerAccount& of = ledger_.trainer(trainer);
  return of.announced.empty() ? of.steps_ended : std::min(of.steps_ended, *of.announced.begin());
}

// The least such number of steps of the job, of the trainers that go on. When none does, the greatest: other
// servers may have got so far while the last one went on.
std::uint64_t StateMachine::LowStep() const {
  std::optional<std::uint64_t> low;
  std::uint64_t most = 0;
  for (int t = 0; t < ledger_.trainers(); ++t) {
    const std::uint64_t first = ledger_.config().starts[static_cast<std::size_t>(t)].first_step;
    const std::uint64_t ended = first + StepsToBeIn(t);
    most = std::max(most, ended);
    if (!completed(t)) low = std::min(low.value_or(ended), ended);
  }
  return low.value_or(most);
}

// Whether a part would have more steps than any before of a trainer whose log is nearly full.
bool StateMachine::WouldFreeALog() const {
  return std::ranges::any_of(vector_.asked, [&](int trainer) {
    const MachineConfig::Start now{.taken = StepsToBeIn(trainer),
                                   .counted = ledger_.trainer(trainer).counted};
    return now.Durable(ledger_.config().counts_steps) > durable_version(trainer);
  });
}

// Whether no value that a trainer has set before its first step is missing in the memory.
bool StateMachine::ValuesAreSet() const {
  for (const ChunkId& at : ledger_.AllChunks()) {
    const ChunkAccount& chunk = ledger_.chunk(at);
    if (IsStart(at.param) || chunk.version() > 0) continue;
    if (!chunk.is_set()) return false;
    if (chunk.initial_of().empty()) continue;
    for (int t = 0; t < ledger_.trainers(); ++t)
      if (!chunk.initial_of().contains(t) && !ledger_.IsAbsent(t, 0)) return false;
  }
  return true;
}

// Whether an update must wait: in synchronous training it belongs to the next checkpoint, in asynchronous
// training the next one is due.
bool StateMachine::HoldsUpdate(ChunkId at) const {
  const ChunkAccount& chunk = ledger_.chunk(at);
  if (ledger_.config().cuts_keys) return key_cuts_.Delays(at.param, chunk.version());
  if (!by_trainer()) return cut_.Delays(chunk.version() + 1);
  if (chunk.limited()) return false;  // the one that is being made needs it
  if (holds_updates_) return true;
  return vector_.open() && vector_.DueAt(LowStep()).has_value();
}

void StateMachine::CutVectorIfDue(Actions& out) {
  if (!by_trainer() || ended_ || vector_.open() || !cut_.makes_any()) return;
  std::uint64_t name = stop_at_.value_or(0);
  if (name <= vector_.last()) name = 0;  // no stop, or it was started again and has that one
  if (WouldFreeALog()) vector_.Plan();
  if (name == 0) name = vector_.DueAt(LowStep()).value_or(0);
  if (name == 0 || !ValuesAreSet()) return;
  stop_at_.reset();
  vector_.asked.clear();
  BeginVector(name, out);
}

// Of each trainer the part has all steps of which it has sent a gradient here: it sends the rest of such a
// step without waiting.
void StateMachine::BeginVector(std::uint64_t name, Actions& out) {
  VectorCut::Steps below;
  for (int t = 0; t < ledger_.trainers(); ++t)
    below.push_back(std::max({StepsToBeIn(t), ledger_.trainer(t).steps_begun,
                              ledger_.config().starts[static_cast<std::size_t>(t)].taken}));
  std::vector<ChunkId> updated;
  for (const ChunkId& at : ledger_.AllChunks())
    if (!IsStart(at.param)) updated.push_back(at);
  vector_.Begin(name, std::move(below), updated.size());
  if (updated.empty()) return CutTheRestOfVector(out);
  for (const ChunkId& at : updated) ledger_.chunk(at).Limit(vector_.below());
  for (const ChunkId& at : updated) CutIfReached(at, out);
  for (const ChunkId& at : std::exchange(wait_for_cut_, {})) StartBlock(at, out);
}

// Copies the chunk once it has applied exactly the steps of the part.
void StateMachine::CutIfReached(ChunkId at, Actions& out) {
  ChunkAccount& chunk = ledger_.chunk(at);
  if (!chunk.limited() || !chunk.HasAllBelowTheLimit()) return;
  chunk.Limit(nullptr);
  Cut(at, vector_.last(), out);
  if (vector_.Reached()) CutTheRestOfVector(out);
}

// All chunks have the steps of the part; the learning-rate block runs after what it keeps is copied.
void StateMachine::CutTheRestOfVector(Actions& out) {
  const bool counts = ledger_.config().counts_steps;
  vector_.write = {.step = vector_.last()};
  vector_.durable_when_closed.clear();
  for (int t = 0; t < ledger_.trainers(); ++t) {
    const MachineConfig::Start& start = ledger_.config().starts[static_cast<std::size_t>(t)];
    const MachineConfig::Start now{.taken = (*vector_.below())[static_cast<std::size_t>(t)],
                                   .counted = ledger_.trainer(t).counted};
    vector_.durable_when_closed.push_back(now.Durable(counts));
    vector_.write.steps_in.push_back(start.first_step + now.taken);
    if (counts) vector_.write.counted.push_back(now.counted.Later(start.first_step).ranges());
  }
  CutTheRest(vector_.last(), out);
}

void StateMachine::VectorWritten(Actions& out) {
  vector_.durable = std::move(vector_.durable_when_closed);
  vector_.Close();
  CutVectorIfDue(out);
}

bool StateMachine::HasCaughtUpByTrainer() const {
  for (const ChunkId& at : ledger_.AllChunks()) {
    if (IsStart(at.param)) continue;
    for (int t = 0; t < ledger_.trainers(); ++t)
      if (ledger_.chunk(at).applied(t) < ledger_.trainer(t).step_at_hello) return false;
  }
  return true;
}

}  // namespace penstock::pserver
