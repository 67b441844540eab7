// Initial values that trainers set, and what happens when a trainer leaves, is lost and returns.
#include <algorithm>
#include <optional>
#include <utility>

#include "executor/protocol/any_step.h"
#include "executor/pserver/machine/state_machine.h"

namespace penstock::pserver {
namespace {

constexpr char kLoadTheSame[] =
    "load the same values on every trainer, after its startup program and before its first step";

}  // namespace

void StateMachine::PushInitial(const PushEvent& push, Actions& out) {
  const ChunkId at{push.param, push.chunk};
  const ChunkAccount& chunk = ledger_.chunk(at);
  if (const std::uint64_t step = ledger_.config().first_step; step > 0) {
    return Fail(FailedPrecondition("E-resume-load", "trainer ", push.trainer, " set the value of ",
                                   ledger_.param(push.param).name,
                                   " before its first step, in a job that continues after step ", step)
                    .With("load values only in a new job: if penstock.resume_step() == 0"),
                out);
  }
  const bool is_key = ledger_.param(push.param).is_key;  // of which only worker 0 sends the value
  const bool is_set = chunk.version() > 0 || !chunk.initial_of().empty();
  if (is_key && (is_set || ledger_.param(push.param).restored || push.trainer != 0))
    return Acknowledge(push, ledger_.config().window, out);
  if (chunk.version() > 0 && !chunk.initial_of().contains(push.trainer)) {
    return Fail(FailedPrecondition("E-load-differs", "trainer ", push.trainer, " set the value of ",
                                   ledger_.param(push.param).name,
                                   " before its first step, when others had trained it")
                    .With(kLoadTheSame),
                out);
  }
  ledger_.chunk(at).CollectInitial(push, ledger_.config().part_bytes);
  Acknowledge(push, ledger_.config().window, out);
  Advance(at, out);
}

// Starts to write or compare a complete initial value. Returns false if there is none.
bool StateMachine::StartInitial(ChunkId at, Actions& out) {
  MergeAction merge{.param = at.param, .chunk = at.chunk, .parts = {}};
  if (!ledger_.chunk(at).StartInitial(merge)) return false;
  ++busy_;
  out.emplace_back(std::move(merge));
  return true;
}

// Whether no trainer has set the chunk's initial value, or every one has. If not, a trainer has not begun
// yet, or the job has ended.
bool StateMachine::HasAllInitial(ChunkId at, Actions& out) {
  const ChunkAccount& account = ledger_.chunk(at);
  const bool is_key = ledger_.param(at.param).is_key;
  if (is_key || account.version() > 0 || account.initial_of().empty()) return true;
  for (int t = 0; t < ledger_.trainers(); ++t) {
    if (account.initial_of().contains(t) || ledger_.IsAbsent(t, 0)) continue;
    if (ledger_.trainer(t).steps_begun == 0) return false;
    Fail(FailedPrecondition("E-load-differs", "trainer ", *account.initial_of().begin(), " set the value of ",
                            ledger_.param(at.param).name, " before its first step, trainer ", t, " did not")
             .With(kLoadTheSame),
         out);
    return false;
  }
  return true;
}

// A checkpoint does not say which trainers had completed. One that is at an earlier step had, and says so
// again. A new process of a trainer says 0: it does not know its step yet.
void StateMachine::Joined(int trainer, std::uint64_t step) {
  TrainerAccount& account = ledger_.trainer(trainer);
  account.step_at_hello = step;
  if (by_trainer()) return;
  if (ledger_.config().restarted && step > 0 && step < ledger_.config().first_version)
    account.steps_ended = account.steps_begun = step;
}

void StateMachine::Complete(int trainer, Actions& out) {
  if (ended_ && !completed(trainer)) return;  // it has been told the error
  // A server that may be started again answers at the end (EndIfDrained): it may need this trainer.
  if (!ledger_.config().recovers || ended_) out.emplace_back(ReplyAction{trainer, protocol::Completed{}});
  if (!completed(trainer)) Leave(trainer, out);
}

void StateMachine::Gone(int trainer, const Status& why, Actions& out) {
  if (!completed(trainer)) Fail(why, out);
}

void StateMachine::Lose(int trainer, Actions& out) {
  if (ended_ || completed(trainer) || trainer_loss() != TrainerLoss::kShrink) return;
  ledger_.trainer(trainer).lost = true;
  // Whole gradients are merged in their turn.
  for (const ChunkId& at : ledger_.AllChunks()) {
    ChunkAccount& chunk = ledger_.chunk(at);
    chunk.Forget(trainer, chunk.whole_below(trainer));
  }
  AdvanceAll(out);
  EndIfDrained(out);
}

// The step at which a new process continues. Those who have waited need the step whose gradients are not all
// here; those who have gone on, the first step in which nothing stands for its gradients yet.
std::uint64_t StateMachine::FindStep(int trainer) const {
  const bool waits = trainer_loss() == TrainerLoss::kWait;
  std::optional<std::uint64_t> step;
  for (const ChunkId& at : ledger_.AllChunks()) {
    if (IsStart(at.param) || ledger_.param(at.param).is_key) continue;
    const ChunkAccount& chunk = ledger_.chunk(at);
    const std::uint64_t own = waits ? chunk.whole_below(trainer) : chunk.taken(trainer);
    step = !step ? own : waits ? std::min(*step, own) : std::max(*step, own);
  }
  // A schedule needs the count of a step, too, which may have been lost with the process.
  if (step && waits && ledger_.config().counts_steps)
    step = std::min(*step, ledger_.trainer(trainer).reported.first_gap());
  return step.value_or(ledger_.trainer(trainer).steps_ended);
}

std::uint64_t StateMachine::continues_at(int trainer) const {
  const bool knows = trainer_loss() != TrainerLoss::kWait || ledger_.UpdatedChunks() > 0;
  return knows ? steps_ended(trainer) : protocol::kAnyStep;
}

// Whether the memory still has all values with which a step began. A process that dies while it sends several
// steps again to a server that was started again leaves chunks that are steps apart.
Status StateMachine::CanRepeat(int trainer, std::uint64_t step) const {
  if (trainer_loss() != TrainerLoss::kWait || !policy_->StepsAreWhole()) return OkStatus();
  for (const ChunkId& at : ledger_.AllChunks()) {
    const ChunkAccount& chunk = ledger_.chunk(at);
    if (IsStart(at.param) || ledger_.param(at.param).is_key ||
        chunk.version() + (chunk.running() ? 1 : 0) <= step + 1)
      continue;
    return FailedPrecondition("E-resume-step", "trainer ", trainer,
                              " died while it sent its steps again: of ", ledger_.param(at.param).name,
                              " there are ", chunk.version(), " steps, of another parameter ", step,
                              ", and with its values a new process cannot repeat the next one")
        .With("restart the job from its last checkpoint: --max_restart N does");
  }
  return OkStatus();
}

void StateMachine::Return(int trainer, Actions& out) {
  if (ended_ || completed(trainer)) return;
  TrainerAccount& from = ledger_.trainer(trainer);
  const std::uint64_t step = FindStep(trainer);
  if (const Status repeats = CanRepeat(trainer, step); !repeats.ok()) return Fail(repeats, out);
  for (const ChunkId& at : ledger_.AllChunks()) {
    ChunkAccount& chunk = ledger_.chunk(at);
    const bool is_key = ledger_.param(at.param).is_key;  // each has steps of its own
    chunk.Forget(trainer, IsStart(at.param) ? 0 : is_key ? chunk.whole_below(trainer) : step);
  }
  ForgetRequests(trainer);
  from.lost = false;
  from.steps_ended = from.kept_below = step;
  from.announced.erase(from.announced.lower_bound(step), from.announced.end());
  // The earlier process took along what it had kept for this server, which needs it to be started again.
  if (ledger_.config().recovers) PlanCut(step, out);
  if (trainer_loss() != TrainerLoss::kShrink) return;
  from.kept_below = 0;
  from.absent_below = step;
  from.joins = true;
  AdvanceAll(out);
}

void StateMachine::BeginAt(int trainer, std::uint64_t step, Actions& out) {
  TrainerAccount& from = ledger_.trainer(trainer);
  if (ended_ || trainer_loss() != TrainerLoss::kShrink || !from.joins || step <= from.absent_below) return;
  from.absent_below = from.steps_ended = step;
  AdvanceAll(out);
}

// The numbers of requests begin again with a new process.
void StateMachine::ForgetRequests(int trainer) {
  TrainerAccount& from = ledger_.trainer(trainer);
  from.saves_done = 0;
  const auto is_its = [&](const auto& request) { return request.trainer == trainer; };
  for (const ChunkId& at : ledger_.AllChunks()) {
    ChunkAccount& chunk = ledger_.chunk(at);
    std::erase_if(chunk.pulls, [&](const auto& pull) { return pull.second == trainer; });
    std::erase_if(chunk.row_pulls, is_its);
    const bool saving = chunk.saving && is_its(chunk.saves.front());
    from.saves_for_last = from.saves_for_last || saving;
    chunk.saves.erase(std::remove_if(chunk.saves.begin() + (saving ? 1 : 0), chunk.saves.end(), is_its),
                      chunk.saves.end());
  }
}

void StateMachine::Leave(int trainer, Actions& out) {
  ledger_.trainer(trainer).completed = true;
  ++completed_;
  policy_->Completed(trainer);
  TellWhoLeft(out);
  AdvanceAll(out);  // some may have waited for this trainer
  GiveAllTurns(out);
  CutVectorIfDue(out);
  CutKeysIfDue(out);
  EndIfDrained(out);
}

// Reports a completed trainer when another one begins a step in which it takes no part. Trainers that all
// end at the same step are not reported.
void StateMachine::TellWhoLeft(Actions& out) {
  if (completed_ == 0 || ended_ || !policy_->CountsTheCompleted()) return;
  for (int t = 0; t < ledger_.trainers(); ++t) {
    TrainerAccount& trainer = ledger_.trainer(t);
    if (!trainer.completed || trainer.left) continue;
    bool others_go_on = false;
    for (int other = 0; other < ledger_.trainers(); ++other)
      others_go_on = others_go_on || (other != t && ledger_.trainer(other).steps_begun > trainer.steps_ended);
    if (!others_go_on) continue;
    trainer.left = true;
    --completed_;
    out.emplace_back(LeftAction{.trainer = t, .steps = trainer.steps_ended});
  }
}

}  // namespace penstock::pserver
