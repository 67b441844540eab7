#include "executor/pserver/state_machine.h"

#include <algorithm>
#include <utility>

namespace penstock::pserver {
namespace {

// What nobody sends, so that what a message claims is not believed: parts of a gradient of rows.
constexpr std::size_t kPartsMax = std::size_t{1} << 20;

}  // namespace

StateMachine::StateMachine(MachineConfig config)
    : config_(std::move(config)), trainers_(static_cast<std::size_t>(config_.trainers)) {
  for (const MachineConfig::Param& param : config_.params) {
    std::vector<Chunk>& chunks = chunks_.emplace_back(param.chunk_bytes.size());
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      chunks[i].bytes = param.chunk_bytes[i];
      chunks[i].awaited = param.start;
    }
    if (!param.start) at_low_version_ += chunks.size();
  }
}

std::uint64_t StateMachine::version(int param, int chunk) const { return At(param, chunk).version; }

bool StateMachine::IsAbsent(int trainer, std::uint64_t step) const {
  const Trainer& t = trainers_[static_cast<std::size_t>(trainer)];
  return t.completed && step >= t.steps_ended;
}

std::vector<int> StateMachine::Lacks(int param, int chunk) const {
  const Chunk& c = At(param, chunk);
  std::vector<int> lacking;
  if (IsStart(param) && c.awaited && !c.merging) lacking.push_back(0);
  if (IsStart(param) || c.running) return lacking;
  for (int t = c.merged; t < config_.trainers; ++t) {
    const bool here = !c.ahead.empty() && c.ahead.front()[static_cast<std::size_t>(t)].Whole();
    if (!here && !IsAbsent(t, c.version)) lacking.push_back(t);
  }
  return lacking;
}

// How long the whole is of which the push is a part.
std::size_t StateMachine::PushedBytes(const PushEvent& push) const {
  const std::size_t row_bytes = config_.params[static_cast<std::size_t>(push.param)].pushed_row_bytes;
  return row_bytes == 0 || push.initial ? At(push.param, push.chunk).bytes : push.rows * row_bytes;
}

bool StateMachine::CheckPush(const PushEvent& push, Actions& out) {
  const MachineConfig::Param& param = config_.params[static_cast<std::size_t>(push.param)];
  if (push.chunk < 0 || static_cast<std::size_t>(push.chunk) >= param.chunk_bytes.size()) {
    Fail(InvalidArgument("E-rpc-chunk", "trainer ", push.trainer, " pushed chunk ", push.chunk, " of ",
                         param.name, ", which has ", param.chunk_bytes.size()),
         out);
    return false;
  }
  if (param.pushed_row_bytes > 0 && !push.initial &&
      push.rows > kPartsMax * config_.part_bytes / param.pushed_row_bytes) {
    Fail(InvalidArgument("E-rpc-size", "trainer ", push.trainer, " pushed ", push.rows, " rows of ",
                         param.name, ", which are too many for a message of ", kPartsMax, " parts"),
         out);
    return false;
  }
  const std::size_t bytes = PushedBytes(push);
  const std::size_t begin = push.part * config_.part_bytes;
  const bool within = begin < bytes || (bytes == 0 && push.part == 0);  // no rows are one part
  if (!within || push.bytes.size() != std::min(config_.part_bytes, bytes - begin)) {
    Fail(InvalidArgument("E-rpc-size", "trainer ", push.trainer, " pushed ", push.bytes.size(),
                         " bytes as part ", push.part, " of a chunk of ", param.name, " that has ", bytes),
         out);
    return false;
  }
  return true;
}

void StateMachine::Push(const PushEvent& push, Actions& out) {
  if (ended_ || !CheckPush(push, out)) return;
  if (IsStart(push.param)) {
    PushStart(push, out);
    return;
  }
  if (push.initial) {
    PushInitial(push, out);
    return;
  }
  Trainer& from = trainers_[static_cast<std::size_t>(push.trainer)];
  from.steps_begun = std::max(from.steps_begun, push.step + 1);
  TellWhoLeft(out);
  Chunk& c = At(push.param, push.chunk);
  const auto limit = c.version + config_.window;
  if (push.step >= limit) {
    Fail(FailedPrecondition("E-rpc-credit", "trainer ", push.trainer, " pushed step ", push.step,
                            " where only steps below ", limit, " were welcome"),
         out);
    return;
  }
  if (push.step >= c.version) {  // else it was merged already
    if (Collect(push, push.step - c.version).rows != push.rows) {
      Fail(
          InvalidArgument("E-rpc-size", "trainer ", push.trainer, " pushed parts of two gradients of ",
                          config_.params[static_cast<std::size_t>(push.param)].name, " for step ", push.step),
          out);
      return;
    }
  }
  Acknowledge(push, limit, out);
  Advance(push.param, push.chunk, out);
}

// `credit`: the trainer may push steps below it.
void StateMachine::Acknowledge(const PushEvent& push, std::uint64_t credit, Actions& out) {
  out.emplace_back(ReplyAction{.trainer = push.trainer,
                               .kind = protocol::MessageKind::kPushed,
                               .param = push.param,
                               .chunk = push.chunk,
                               .part = push.part,
                               .step = push.step,
                               .credit = credit,
                               .initial = push.initial});
}

// Keeps the part with those of its gradient, `ahead` steps from the chunk's version.
StateMachine::Gradient& StateMachine::Collect(const PushEvent& push, std::uint64_t ahead) {
  Chunk& c = At(push.param, push.chunk);
  while (c.ahead.size() <= ahead) c.ahead.emplace_back(static_cast<std::size_t>(config_.trainers));
  Gradient& gradient = c.ahead[ahead][static_cast<std::size_t>(push.trainer)];
  AddPart(push, gradient);
  return gradient;
}

void StateMachine::AddPart(const PushEvent& push, Gradient& gradient) const {
  if (!gradient.begun) {
    gradient.begun = true;
    gradient.rows = push.rows;
    gradient.missing =
        std::max<std::size_t>(1, (PushedBytes(push) + config_.part_bytes - 1) / config_.part_bytes);
    gradient.parts.resize(gradient.missing);
    gradient.have.resize(gradient.missing);
  }
  if (gradient.rows == push.rows && !gradient.have[push.part]) {
    gradient.have[push.part] = true;
    gradient.parts[push.part] = push.bytes;
    --gradient.missing;
  }
}

void StateMachine::PushStart(const PushEvent& push, Actions& out) {
  Chunk& c = At(push.param, push.chunk);
  if (c.awaited && !c.merging) {  // else this is a repeat
    Gradient& value = Collect(push, 0);
    if (value.Whole()) StartMerge(push.param, push.chunk, push.trainer, &value, out);
  }
  Acknowledge(push, config_.window, out);
}

// `gradient` is left without its parts, but known to have been there; null: zeros.
void StateMachine::StartMerge(int param, int chunk, int trainer, Gradient* gradient, Actions& out) {
  Chunk& c = At(param, chunk);
  c.merging = true;
  ++busy_;
  MergeAction merge{.param = param, .chunk = chunk, .trainer = trainer, .step = c.version, .parts = {}};
  if (gradient != nullptr) {
    merge.parts = std::move(gradient->parts);
    merge.rows = gradient->rows;
  }
  out.emplace_back(std::move(merge));
}

// Starts whatever the chunk is ready for: the next merge in trainer order, or its block.
void StateMachine::Advance(int param, int chunk, Actions& out) {
  Chunk& c = At(param, chunk);
  if (c.merging || c.running || ended_ || IsStart(param)) return;
  if (StartInitial(param, chunk, out)) return;
  if (c.merged == config_.trainers) {
    StartBlock(param, chunk, out);
    return;
  }
  // A step that nobody takes part in any more does not happen.
  if (c.ahead.empty() && AllCompleted()) return;
  const int trainer = c.merged;
  Gradient* gradient = c.ahead.empty() ? nullptr : &c.ahead.front()[static_cast<std::size_t>(trainer)];
  if (gradient != nullptr && gradient->Whole()) {
    StartMerge(param, chunk, trainer, gradient, out);
  } else if (IsAbsent(trainer, c.version)) {
    StartMerge(param, chunk, trainer, nullptr, out);
  }
}

void StateMachine::MergeDone(int param, int chunk, Actions& out) {
  Chunk& c = At(param, chunk);
  c.merging = false;
  --busy_;
  if (IsStart(param)) {
    c.awaited = false;
    c.ahead.clear();
    AnswerWaiting(param, chunk, out);
  } else if (c.loading >= 0) {
    InitialDone(param, chunk, out);
  } else {
    ++c.merged;
    Advance(param, chunk, out);
  }
  EndIfDrained(out);
}

void StateMachine::StartBlock(int param, int chunk, Actions& out) {
  Chunk& c = At(param, chunk);
  if (!RequireAllInitial(param, chunk, out)) return;
  if (config_.has_lr_block && lr_version_ <= c.version) {
    wait_for_lr_.insert({param, chunk});
    // The rate of the step before is in use until every chunk has taken that step.
    if (!lr_running_ && low_version_ >= lr_version_) {
      lr_running_ = true;
      ++busy_;
      out.emplace_back(RunAction{.param = -1, .chunk = 0, .step = lr_version_});
    }
    return;
  }
  c.running = true;
  ++busy_;
  out.emplace_back(RunAction{.param = param, .chunk = chunk, .step = c.version});
}

void StateMachine::BlockDone(int param, int chunk, const Status& status, Actions& out) {
  if (ended_) return;
  if (!status.ok()) {
    Fail(status, out);
    return;
  }
  --busy_;
  if (param < 0) {
    lr_running_ = false;
    ++lr_version_;
    const auto ready = std::exchange(wait_for_lr_, {});
    for (const auto& [p, k] : ready) StartBlock(p, k, out);
    EndIfDrained(out);
    return;
  }
  Chunk& c = At(param, chunk);
  c.running = false;
  c.merged = 0;
  c.published = false;
  if (!c.ahead.empty()) c.ahead.pop_front();
  if (c.version++ == low_version_ && --at_low_version_ == 0) {
    ++low_version_;
    for (const std::vector<Chunk>& chunks : chunks_) {
      at_low_version_ += static_cast<std::size_t>(std::count_if(
          chunks.begin(), chunks.end(), [&](const Chunk& x) { return x.version == low_version_; }));
    }
    const auto ready = std::exchange(wait_for_lr_, {});
    for (const auto& [p, k] : ready) StartBlock(p, k, out);
  }
  GiveCredit(param, chunk, out);
  AnswerWaiting(param, chunk, out);
  if (chunk == 0) StartSave(param, out);
  Advance(param, chunk, out);
  EndIfDrained(out);
}

// Who pulls every version of what it trains has credit for the next step when it sends that: the chunk's
// version is there. Of a table, a trainer may look up nothing, and be ahead of the version; the answer to its
// last push leaves it without credit, and nothing else would bring it any.
void StateMachine::GiveCredit(int param, int chunk, Actions& out) {
  if (config_.params[static_cast<std::size_t>(param)].pushed_row_bytes == 0) return;
  for (int t = 0; t < config_.trainers; ++t) {
    if (completed(t)) continue;
    out.emplace_back(ReplyAction{.trainer = t,
                                 .kind = protocol::MessageKind::kCredit,
                                 .param = param,
                                 .chunk = chunk,
                                 .credit = credit(param, chunk)});
  }
}

void StateMachine::AnswerWaiting(int param, int chunk, Actions& out) {
  Chunk& c = At(param, chunk);
  const auto pulls = std::exchange(c.pulls, {});
  for (const auto& [version, trainer] : pulls) Pull(trainer, param, chunk, version, out);
  const auto row_pulls = std::exchange(c.row_pulls, {});
  for (const RowsEvent& pull : row_pulls) PullRows(pull, out);
}

bool StateMachine::AllCompleted() const {
  return std::all_of(trainers_.begin(), trainers_.end(), [](const Trainer& t) { return t.completed; });
}

void StateMachine::EndIfDrained(Actions& out) {
  if (ended_ || busy_ > 0 || !AllCompleted()) return;
  ended_ = true;
  out.emplace_back(EndAction{OkStatus()});
}

void StateMachine::Pull(int trainer, int param, int chunk, std::uint64_t version, Actions& out) {
  if (ended_) return;
  const MachineConfig::Param& p = config_.params[static_cast<std::size_t>(param)];
  if (chunk < 0 || static_cast<std::size_t>(chunk) >= p.chunk_bytes.size()) {
    Fail(InvalidArgument("E-rpc-chunk", "trainer ", trainer, " pulled chunk ", chunk, " of ", p.name,
                         ", which has ", p.chunk_bytes.size()),
         out);
    return;
  }
  Chunk& c = At(param, chunk);
  if (IsStart(param) ? c.awaited : version > c.version || c.loading >= 0) {
    c.pulls.insert({version, trainer});
    RequireStarter(param, chunk, out);
  } else {
    AnswerPull(trainer, param, chunk, version, out);
  }
}

// A pull that waits for a start value waits for trainer 0, which must not have gone home.
void StateMachine::RequireStarter(int param, int chunk, Actions& out) {
  const Chunk& c = At(param, chunk);
  if (!c.awaited || c.merging || c.pulls.empty() || !completed(0)) return;
  Fail(FailedPrecondition("E-start-missing", "trainer 0 completed without sending the start value of ",
                          config_.params[static_cast<std::size_t>(param)].name, ", which trainer ",
                          c.pulls.begin()->second, " waits for"),
       out);
}

void StateMachine::AnswerPull(int trainer, int param, int chunk, std::uint64_t version, Actions& out) {
  Chunk& c = At(param, chunk);
  // While the block runs, the version before it exists only as a copy made for somebody else.
  const bool here = IsStart(param) || (version == c.version && (!c.running || c.published));
  c.published = c.published || here;
  out.emplace_back(ReplyAction{.trainer = trainer,
                               .kind = here ? protocol::MessageKind::kPulled : protocol::MessageKind::kGone,
                               .param = param,
                               .chunk = chunk,
                               .part = 0,
                               .step = version,
                               .credit = c.version + config_.window});
}

void StateMachine::EndStep(int trainer, std::uint64_t step, const std::set<int>& params_pushed,
                           Actions& out) {
  if (ended_) return;
  Trainer& t = trainers_[static_cast<std::size_t>(trainer)];
  if (step > t.steps_ended) return;  // its predecessor is still under way, and this one will come again
  if (step == t.steps_ended) {
    for (std::size_t i = 0; i < config_.params.size(); ++i) {
      if (config_.params[i].start || params_pushed.contains(static_cast<int>(i))) continue;
      Fail(FailedPrecondition("E-step-incomplete", "trainer ", trainer, " ended step ", step,
                              " without sending the gradient of ", config_.params[i].name),
           out);
      return;
    }
    ++t.steps_ended;
  }
  out.emplace_back(ReplyAction{.trainer = trainer, .kind = protocol::MessageKind::kStepEnded, .step = step});
}

void StateMachine::Complete(int trainer, Actions& out) {
  Trainer& t = trainers_[static_cast<std::size_t>(trainer)];
  if (ended_ && !t.completed) return;  // it has been told the error
  out.emplace_back(ReplyAction{.trainer = trainer, .kind = protocol::MessageKind::kCompleted});
  if (t.completed) return;
  t.completed = true;
  ++completed_;
  TellWhoLeft(out);
  for (std::size_t p = 0; p < chunks_.size(); ++p) {  // some may have waited for this trainer's gradient
    for (std::size_t k = 0; k < chunks_[p].size(); ++k) {
      Advance(static_cast<int>(p), static_cast<int>(k), out);
      RequireStarter(static_cast<int>(p), static_cast<int>(k), out);
    }
  }
  EndIfDrained(out);
}

void StateMachine::Gone(int trainer, const Status& why, Actions& out) {
  if (ended_ || trainers_[static_cast<std::size_t>(trainer)].completed) return;
  Fail(why, out);
}

void StateMachine::Fail(const Status& why, Actions& out) {
  if (ended_) return;
  ended_ = true;
  for (int t = 0; t < config_.trainers; ++t) {
    if (completed(t)) continue;
    out.emplace_back(ReplyAction{.trainer = t, .kind = protocol::MessageKind::kError, .error = why});
  }
  out.emplace_back(EndAction{why});
}

}  // namespace penstock::pserver
