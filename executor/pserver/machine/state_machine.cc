#include "executor/pserver/machine/state_machine.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace penstock::pserver {
namespace {

// How many reported steps per trainer may wait to be counted. No trainer is that far ahead of its gradients.
constexpr std::size_t kWaitingCountsMax = 1024;
// How many steps of a trainer may end before its first one that is not taken yet. A client is at most two
// steps ahead of what was acknowledged.
constexpr std::uint64_t kStepsAheadMax = 64;
// The same for a server that is sent again what it lacks since its checkpoint.
constexpr std::size_t kLackingMax = std::size_t{1} << 20;

std::size_t ChunksThatClip(const MachineConfig& config) {
  std::size_t chunks = 0;
  for (const MachineConfig::Param& param : config.params)
    chunks += param.clips ? param.bytes_of_chunks.size() : 0;
  return chunks;
}

// In asynchronous training the block runs once, and then for each counted step. From the counters that a
// checkpoint has it computes the same rate again; without counters the checkpoint has the rate.
std::uint64_t FirstRateRuns(const MachineConfig& config) {
  if (config.starts.empty()) return config.first_version;
  return config.first_version > 0 && !config.counts_steps ? 1 : 0;
}

}  // namespace

StateMachine::StateMachine(MachineConfig config, std::unique_ptr<UpdatePolicy> policy)
    : ledger_(std::move(config)),
      policy_(std::move(policy)),
      sums_(ChunksThatClip(ledger_.config()), ledger_.config().servers, ledger_.config().server),
      rate_runs_(FirstRateRuns(ledger_.config())),
      cut_(ledger_.config().cut_every, ledger_.config().first_step),
      durable_version_(ledger_.config().first_version),
      vector_(ledger_.config().cut_every, ledger_.config().first_cut),
      key_cuts_(ledger_.config().trainers, ledger_.config().first_cut),
      idle_steps_(ledger_.config().first_version) {
  for (const MachineConfig::Start& start : ledger_.config().starts)
    vector_.durable.push_back(start.Durable(ledger_.config().counts_steps));
  policy_->Begin(ledger_);
  Actions nobody_is_here_yet;  // each trainer is told when it is welcomed
  GiveAllTurns(nobody_is_here_yet);
}

std::uint64_t StateMachine::WelcomeBelow(ChunkId at, int trainer) const {
  return IsStart(at.param) ? ledger_.config().window : policy_->WelcomeBelow(ledger_, at, trainer);
}

std::vector<int> StateMachine::Lacks(int param, int chunk) const {
  const ChunkAccount& account = ledger_.chunk({param, chunk});
  if (IsStart(param)) {
    return account.awaited() && !account.merging() ? std::vector<int>{0} : std::vector<int>();
  }
  return policy_->Lacks(ledger_, {param, chunk});
}

void StateMachine::Push(const PushEvent& push, Actions& out) {
  if (ended_) return;
  if (const Status fits = ledger_.CheckPush(push); !fits.ok()) return Fail(fits, out);
  if (IsStart(push.param)) {
    PushStart(push, out);
  } else if (push.initial) {
    PushInitial(push, out);
  } else {
    PushGradient(push, out);
  }
}

void StateMachine::PushGradient(const PushEvent& push, Actions& out) {
  TrainerAccount& from = ledger_.trainer(push.trainer);
  from.steps_begun = std::max(from.steps_begun, push.step + 1);
  const bool was_announced = !from.announced.empty() && *from.announced.begin() <= push.step;
  from.announced.erase(from.announced.begin(), from.announced.upper_bound(push.step));
  from.joins = false;
  TellWhoLeft(out);
  const ChunkId at{push.param, push.chunk};
  const std::uint64_t limit = WelcomeBelow(at, push.trainer);
  if (push.step >= limit) {
    Fail(FailedPrecondition("E-rpc-credit", "trainer ", push.trainer, " pushed step ", push.step,
                            " where only steps below ", limit, " were allowed"),
         out);
    return;
  }
  ChunkAccount& chunk = ledger_.chunk(at);
  const bool repeat = push.step < std::max(chunk.taken(push.trainer), from.kept_below);
  const bool was_whole = repeat || chunk.whole(push.trainer, push.step);
  repeats_ += repeat ? 1 : 0;
  if (!repeat && !chunk.Collect(push, ledger_.PushedBytes(push), ledger_.config().part_bytes)) {
    Fail(InvalidArgument("E-rpc-size", "trainer ", push.trainer, " pushed parts of two gradients of ",
                         ledger_.param(push.param).name, " for step ", push.step),
         out);
    return;
  }
  Acknowledge(push, limit, out);
  if (was_announced) CutVectorIfDue(out);
  const bool came = !was_whole && chunk.whole(push.trainer, push.step);
  if (came && policy_->Came(push.trainer, push.step)) return AdvanceAll(out);
  Advance(at, out);
}

// For events that may release any chunk.
void StateMachine::AdvanceAll(Actions& out) {
  for (const ChunkId& at : ledger_.AllChunks()) {
    Advance(at, out);
    AnswerWaiting(at, out);
  }
}

void StateMachine::Acknowledge(const PushEvent& push, std::uint64_t welcome_below, Actions& out) {
  if (!push.initial) ledger_.chunk({push.param, push.chunk}).Tell(push.trainer, welcome_below);
  out.emplace_back(ReplyAction{.trainer = push.trainer,
                               .reply = PushedReply{.at = {{push.param, push.chunk}, !push.initial},
                                                    .step = push.step,
                                                    .part = push.part,
                                                    .welcome_below = welcome_below}});
}

std::uint64_t StateMachine::whole_below(int param, int trainer) const {
  std::optional<std::uint64_t> below;
  for (int chunk = 0; chunk < static_cast<int>(ledger_.param(param).bytes_of_chunks.size()); ++chunk) {
    const std::uint64_t of_chunk = ledger_.chunk({param, chunk}).whole_below(trainer);
    below = std::min(below.value_or(of_chunk), of_chunk);
  }
  return below.value_or(0);
}

std::uint64_t StateMachine::least_credit(int param, int trainer) const {
  std::optional<std::uint64_t> least;
  for (int chunk = 0; chunk < static_cast<int>(ledger_.param(param).bytes_of_chunks.size()); ++chunk) {
    const std::uint64_t of_chunk = WelcomeBelow({param, chunk}, trainer);
    least = std::min(least.value_or(of_chunk), of_chunk);
  }
  return least.value_or(0);
}

void StateMachine::PushStart(const PushEvent& push, Actions& out) {
  const ChunkId at{push.param, push.chunk};
  ChunkAccount& chunk = ledger_.chunk(at);
  if (chunk.awaited() && !chunk.merging()) {  // otherwise this is a retry
    PushEvent first = push;
    first.step = 0;
    chunk.Collect(first, chunk.bytes(), ledger_.config().part_bytes);
    if (chunk.here(push.trainer)) StartMerge(at, {Turn::Kind::kMerge, push.trainer}, out);
  }
  Acknowledge(push, WelcomeBelow(at, push.trainer), out);
}

// Merges the trainer's next gradient, or zeros if it is not here.
void StateMachine::StartMerge(ChunkId at, const Turn& turn, Actions& out) {
  MergeAction merge{
      .param = at.param, .chunk = at.chunk, .trainer = turn.trainer, .parts = {}, .of = turn.of};
  ChunkAccount& chunk = ledger_.chunk(at);
  if (turn.kind == Turn::Kind::kZeros && ledger_.IsMissing(turn.trainer, chunk.version()))
    chunk.CountMissing();
  if (chunk.missing() > 0 && turn.trainer + 1 == ledger_.trainers())
    merge.mean_of = ledger_.trainers() - chunk.missing();
  chunk.StartMerge(merge);
  ++busy_;
  out.emplace_back(std::move(merge));
}

// Starts whatever the chunk is ready for.
void StateMachine::Advance(ChunkId at, Actions& out) {
  ChunkAccount& chunk = ledger_.chunk(at);
  if (chunk.merging() || chunk.running() || ended_ || IsStart(at.param)) return;
  if (StartInitial(at, out) || chunk.awaited()) return;
  Turn turn = policy_->Next(ledger_, at);
  const bool drops = turn.kind == Turn::Kind::kDrop;
  for (; turn.kind == Turn::Kind::kDrop; turn = policy_->Next(ledger_, at)) chunk.Drop(turn.trainer);
  if (turn.kind == Turn::Kind::kRun) {
    StartBlock(at, out);
  } else if (turn.kind != Turn::Kind::kWait) {
    StartMerge(at, turn, out);
  }
  if (drops) AnswerWaiting(at, out);  // a pull may have waited for the dropped gradient
}

void StateMachine::MergeDone(int param, int chunk, Actions& out) {
  const ChunkId at{param, chunk};
  ChunkAccount& account = ledger_.chunk(at);
  --busy_;
  const bool was_awaited = account.loading() || IsStart(param);
  if (account.loading()) {
    account.EndInitial();
  } else {
    policy_->TurnEnds(ledger_, at);
    account.EndMerge();
    GiveTurns(param, out);
  }
  if (was_awaited) AnswerWaiting(at, out);
  if (was_awaited) CutVectorIfDue(out);
  if (was_awaited) CutKeysIfDue(out);
  Advance(at, out);
  EndIfDrained(out);
}

void StateMachine::StartBlock(ChunkId at, Actions& out) {
  if (!HasAllInitial(at, out)) return;
  if (HoldsUpdate(at)) {
    wait_for_cut_.insert(at);
    return;
  }
  if (!MayUpdate(at, out)) return;
  if (ledger_.config().has_lr_block && rate_runs_ < policy_->RateRuns(ledger_, at)) {
    wait_for_rate_.insert(at);
    return StartRate(out);
  }
  ledger_.StartBlock(at);
  ++busy_;
  out.emplace_back(RunAction{.param = at.param, .chunk = at.chunk, .step = ledger_.chunk(at).version()});
}

// The first run computes the rate that training begins with, and counts no step.
void StateMachine::StartRate(Actions& out) {
  if (rate_running_ || !policy_->RateMayRun(ledger_, rate_runs_)) return;
  rate_running_ = true;
  ++busy_;
  const bool counts = rate_runs_ > 0 && ledger_.count_is_due();
  out.emplace_back(RunAction{
      .param = -1, .chunk = 0, .step = rate_runs_, .counts = counts ? ledger_.TakeCounted().trainer : -1});
}

void StateMachine::CountStep(int trainer, std::uint64_t step, Actions& out) {
  if (ended_) return;
  if (!ledger_.config().counts_steps) {
    return Fail(FailedPrecondition("E-rpc-count", "trainer ", trainer, " told of step ", step,
                                   " a learning-rate schedule that counts no steps of trainers"),
                out);
  }
  StepSet& reported = ledger_.trainer(trainer).reported;
  if (!reported.Contains(step)) {
    const std::size_t most = ledger_.config().restarted ? kLackingMax : kWaitingCountsMax;
    if (ledger_.counts_waiting() >= most * static_cast<std::size_t>(ledger_.trainers())) {
      return Fail(FailedPrecondition("E-rpc-credit", "trainer ", trainer, " told of step ", step, " while ",
                                     ledger_.counts_waiting(), " steps remain to be counted"),
                  out);
    }
    reported.Add(step);
    ledger_.AddCounted({trainer, step});
    CountWhatIsDue(out);
  }
  out.emplace_back(ReplyAction{trainer, protocol::StepCounted{step}});
}

void StateMachine::CountWhatIsDue(Actions& out) {
  if (!ledger_.config().counts_steps || ended_) return;
  ledger_.FindDueCount();
  if (ledger_.count_is_due()) StartRate(out);
}

void StateMachine::StartThoseThatWaitForTheRate(Actions& out) {
  for (const ChunkId& at : std::exchange(wait_for_rate_, {})) StartBlock(at, out);
}

void StateMachine::BlockDone(int param, int chunk, const Status& status, Actions& out) {
  if (ended_) return;
  if (!status.ok()) return Fail(status, out);
  --busy_;
  if (param < 0) {
    rate_running_ = false;
    ++rate_runs_;
    CutVectorIfDue(out);
    CountWhatIsDue(out);
    StartThoseThatWaitForTheRate(out);
    EndIfDrained(out);
    return;
  }
  const ChunkId at{param, chunk};
  const bool all_are_there = ledger_.EndBlock(at);
  CutIfDue(at, all_are_there, out);
  CutIfStopped(out);
  if (all_are_there) policy_->LowVersionRose(ledger_);
  if (all_are_there) StartThoseThatWaitForTheRate(out);
  CountWhatIsDue(out);
  TellWelcome(at, out);
  AnswerWaiting(at, out);
  if (all_are_there) GiveAllTurns(out);
  StartSave(param, out);
  Advance(at, out);
  EndIfDrained(out);
}

void StateMachine::TellCredit(int param, int trainer, Actions& out) {
  const auto chunks = static_cast<int>(ledger_.param(param).bytes_of_chunks.size());
  for (int chunk = 0; chunk < chunks; ++chunk) {
    if (WelcomeBelow({param, chunk}, trainer) > 0) TellCredit({param, chunk}, trainer, out);
  }
}

void StateMachine::TellCredit(ChunkId at, int trainer, Actions& out) {
  const std::uint64_t below = WelcomeBelow(at, trainer);
  ledger_.chunk(at).Tell(trainer, below);
  out.emplace_back(
      ReplyAction{.trainer = trainer, .reply = CreditReply{.at = {at, true}, .welcome_below = below}});
}

void StateMachine::TellWelcome(ChunkId at, Actions& out) {
  for (int t = 0; t < ledger_.trainers(); ++t) {
    // A trainer that sends steps again pulls no versions, which would bring it credit.
    const bool again =
        ledger_.config().restarted && ledger_.chunk(at).applied(t) <= ledger_.trainer(t).step_at_hello;
    if (!completed(t) && (again || policy_->TellsWelcome(ledger_, at, t))) TellCredit(at, t, out);
  }
}

void StateMachine::GiveTurns(int param, Actions& out) {
  for (const Grant& grant : policy_->Grants(ledger_, param)) TellCredit(grant.at, grant.trainer, out);
}

// From the last param to the first, because a backward pass computes the last one's gradient first.
void StateMachine::GiveAllTurns(Actions& out) {
  for (int i = static_cast<int>(ledger_.config().params.size()); i-- > 0;) GiveTurns(i, out);
}

void StateMachine::AnswerWaiting(ChunkId at, Actions& out) {
  ChunkAccount& account = ledger_.chunk(at);
  for (const auto& [version, trainer] : std::exchange(account.pulls, {}))
    Pull(trainer, at.param, at.chunk, version, out);
  for (const RowsEvent& pull : std::exchange(account.row_pulls, {})) PullRows(pull, out);
}

void StateMachine::EndIfDrained(Actions& out) {
  const bool over =
      ledger_.NobodyIsLeft() && ledger_.AnyCompleted();         // a job does not end without its result
  const bool holds = holds_updates_ && !wait_for_cut_.empty();  // until the checkpoint of the stop is made
  if (ended_ || busy_ > 0 || !over || !sums_.settled() || holds) return;
  ended_ = true;
  for (int t = 0; ledger_.config().recovers && t < ledger_.trainers(); ++t)
    out.emplace_back(ReplyAction{t, protocol::Completed{}});
  out.emplace_back(EndAction{OkStatus()});
}

void StateMachine::Pull(int trainer, int param, int chunk, std::uint64_t version, Actions& out) {
  if (ended_) return;
  const ChunkId at{param, chunk};
  if (const Status there = ledger_.CheckChunk(trainer, "pulled", at); !there.ok()) return Fail(there, out);
  ChunkAccount& account = ledger_.chunk(at);
  PullAnswer answer = PullAnswer::kWait;  // while a value is awaited or written
  if (IsStart(param)) {
    if (!account.awaited()) answer = PullAnswer::kNow;
  } else if (!account.loading() && !account.awaited()) {
    answer = policy_->Pull(ledger_, at, trainer, version, account.readable());
  }
  const std::uint64_t welcome_below = WelcomeBelow(at, trainer);
  switch (answer) {
    case PullAnswer::kWait:
      account.pulls.insert({version, trainer});
      return RequireStarter(at, out);
    case PullAnswer::kNow:
      account.Publish();
      out.emplace_back(ReplyAction{trainer, PulledReply{at, version, welcome_below}});
      return;
    case PullAnswer::kNewest:
      out.emplace_back(ReplyAction{trainer, PulledReply{at, version, welcome_below, true}});
      return;
    case PullAnswer::kGone:
      out.emplace_back(ReplyAction{trainer, GoneReply{{at}, version, welcome_below}});
      return;
  }
}

// A pull that waits for a held parameter waits for trainer 0, which must not have completed.
void StateMachine::RequireStarter(ChunkId at, Actions& out) {
  const ChunkAccount& account = ledger_.chunk(at);
  if (!account.awaited() || account.merging() || account.pulls.empty() || !completed(0)) return;
  Fail(FailedPrecondition("E-start-missing", "trainer 0 completed without sending the initial value of ",
                          ledger_.param(at.param).name, ", which trainer ", account.pulls.begin()->second,
                          " waits for"),
       out);
}

void StateMachine::EndStep(int trainer, std::uint64_t step, const std::set<int>& params_pushed,
                           Actions& out) {
  if (ended_) return;
  TrainerAccount& from = ledger_.trainer(trainer);
  if (ledger_.UpdatedChunks() == 0) from.steps_ended = std::max(from.steps_ended, step);
  // What a checkpoint has of this trainer need not be ended again.
  if (by_trainer()) from.steps_ended = std::max(from.steps_ended, std::min(step, FirstDurable(trainer)));
  if (step > from.steps_ended) return;  // the preceding end is in transit; this one will be retried
  if (step == from.steps_ended) {
    for (int i = 0; i < static_cast<int>(ledger_.config().params.size()); ++i) {
      if (IsStart(i) || params_pushed.contains(i)) continue;
      if (!policy_->StepsAreWhole()) {
        if (!PassOver(trainer, step, i, out)) return;
        continue;
      }
      Fail(FailedPrecondition("E-step-incomplete", "trainer ", trainer, " ended step ", step,
                              " without sending the gradient of ", ledger_.param(i).name),
           out);
      return;
    }
    ++from.steps_ended;
    if (by_trainer() && !params_pushed.empty() && step >= from.steps_begun) from.announced.insert(step);
    CountWhatIsDue(out);
    CutIfIdle(out);
    CutVectorIfDue(out);
  }
  out.emplace_back(ReplyAction{trainer, protocol::StepEnded{step}});
}

// Skips the param, of which the step has no gradient. Returns false if the job has ended.
bool StateMachine::PassOver(int trainer, std::uint64_t step, int param, Actions& out) {
  for (int k = 0; k < static_cast<int>(ledger_.param(param).bytes_of_chunks.size()); ++k) {
    const ChunkId at{param, k};
    if (!ledger_.chunk(at).Skip(trainer, step, ledger_.config().restarted ? kLackingMax : kStepsAheadMax)) {
      Fail(FailedPrecondition("E-rpc-credit", "trainer ", trainer, " ended step ", step,
                              " while the gradient of ", ledger_.param(param).name, " of step ",
                              ledger_.chunk(at).taken(trainer), " has not come"),
           out);
      return false;
    }
    CutIfReached(at, out);
    Advance(at, out);
    AnswerWaiting(at, out);
    StartSave(param, out);
  }
  return !ended_;
}

void StateMachine::Fail(const Status& why, Actions& out) {
  if (ended_) return;
  ended_ = true;
  for (int t = 0; t < ledger_.trainers(); ++t) {
    if (!completed(t) || ledger_.config().recovers) out.emplace_back(ReplyAction{t, protocol::Failure{why}});
  }
  out.emplace_back(EndAction{why});
}

}  // namespace penstock::pserver
