// What trainers bring before their first step, and what the others learn of one that leaves early.
#include <algorithm>
#include <utility>

#include "executor/pserver/state_machine.h"

namespace penstock::pserver {

// A trainer sends the value before its first gradient, so after version 0 it can only be a repeat.
void StateMachine::PushInitial(const PushEvent& push, Actions& out) {
  Chunk& c = At(push.param, push.chunk);
  if (c.version == 0 && c.loading != push.trainer && !c.initial_of.contains(push.trainer))
    AddPart(push, c.initial[push.trainer]);
  Acknowledge(push, config_.window, out);
  Advance(push.param, push.chunk, out);
}

// Whether a value is written or compared from here on.
bool StateMachine::StartInitial(int param, int chunk, Actions& out) {
  Chunk& c = At(param, chunk);
  const auto whole = std::find_if(c.initial.begin(), c.initial.end(),
                                  [](const auto& value) { return value.second.Whole(); });
  if (whole == c.initial.end()) return false;
  c.merging = true;
  c.loading = whole->first;
  ++busy_;
  out.push_back(MergeAction{.param = param,
                            .chunk = chunk,
                            .trainer = whole->first,
                            .step = 0,
                            .parts = std::move(whole->second.parts),
                            .initial = true});
  c.initial.erase(whole);
  return true;
}

void StateMachine::InitialDone(int param, int chunk, Actions& out) {
  Chunk& c = At(param, chunk);
  c.initial_of.insert(std::exchange(c.loading, -1));
  c.published = false;
  AnswerWaiting(param, chunk, out);
  Advance(param, chunk, out);
}

bool StateMachine::RequireAllInitial(int param, int chunk, Actions& out) {
  const Chunk& c = At(param, chunk);
  if (c.version > 0 || c.initial_of.empty()) return true;
  for (int t = 0; t < config_.trainers; ++t) {
    if (c.initial_of.contains(t) || IsAbsent(t, 0)) continue;
    Fail(FailedPrecondition("E-load-differs", "trainer ", *c.initial_of.begin(), " set the value of ",
                            config_.params[static_cast<std::size_t>(param)].name,
                            " before its first step, trainer ", t, " did not")
             .With("load the same values on every trainer, after its start-up program and before its first "
                   "step"),
         out);
    return false;
  }
  return true;
}

// An end at the same step as all others is no news.
void StateMachine::TellWhoLeft(Actions& out) {
  if (completed_ == 0 || ended_) return;
  for (std::size_t i = 0; i < trainers_.size(); ++i) {
    Trainer& t = trainers_[i];
    const bool others_go_on = std::any_of(trainers_.begin(), trainers_.end(), [&](const Trainer& other) {
      return &other != &t && other.steps_begun > t.steps_ended;
    });
    if (!t.completed || t.left || !others_go_on) continue;
    t.left = true;
    --completed_;
    out.push_back(LeftAction{.trainer = static_cast<int>(i), .steps = t.steps_ended});
  }
}

}  // namespace penstock::pserver
