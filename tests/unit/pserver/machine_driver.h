// Drives a StateMachine in tests: each call is one event and returns the actions as text.
//
//   Driver d(Config(2));
//   EXPECT_EQ(d.Push(0, 0), "pushed t0; merge t0 c0 s0");
#pragma once

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "executor/pserver/machine/policies/sync_policy.h"
#include "executor/pserver/machine/state_machine.h"
#include "framework/base/strings.h"

namespace penstock::test {

// One parameter of two chunks, 8 and 4 bytes; parts of 8 bytes.
inline pserver::MachineConfig Config(int trainers, bool lr = false) {
  return {.trainers = trainers, .has_lr_block = lr, .window = 2, .part_bytes = 8, .params = {{"w", {8, 4}}}};
}

inline Payload Gradient(std::size_t bytes) { return Payload::Of(std::string(bytes, 'g')); }

// "pulled t1 v3".
inline std::string DescribeReply(const pserver::ReplyAction& action) {
  struct {
    std::string t;
    std::string operator()(const pserver::PushedReply&) { return StrCat("pushed", t); }
    std::string operator()(const protocol::StepEnded&) { return StrCat("ended", t); }
    std::string operator()(const protocol::StepCounted&) { return StrCat("counted", t); }
    std::string operator()(const pserver::PulledReply& r) {
      return StrCat(r.newest ? "newest" : "pulled", t, " v", r.version);
    }
    std::string operator()(const pserver::GoneReply& r) { return StrCat("gone", t, " v", r.version); }
    std::string operator()(const pserver::RowsReply& r) {
      return StrCat("rows", t, " v", r.asked.version, " r", r.asked.request);
    }
    std::string operator()(const protocol::RowsGone& r) {
      return StrCat("rowsgone", t, " v", r.version, " r", r.request);
    }
    std::string operator()(const pserver::CreditReply&) { return StrCat("credit", t); }
    std::string operator()(const protocol::Saved& r) {
      return StrCat("saved", t, " r", r.request, " ", r.status.id());
    }
    std::string operator()(const protocol::Completed&) { return StrCat("completed", t); }
    std::string operator()(const protocol::Durable&) { return StrCat("durable", t); }
    std::string operator()(const protocol::Failure& r) { return StrCat("error", t, " ", r.why.id()); }
  } describe{StrCat(" t", action.trainer)};
  return std::visit(describe, action.reply);
}

inline std::string Describe(const pserver::Actions& actions) {
  std::string text;
  for (const pserver::Action& action : actions) {
    if (!text.empty()) text += "; ";
    if (const auto* merge = std::get_if<pserver::MergeAction>(&action)) {
      text += StrCat(merge->initial ? "initial t" : "merge t", merge->trainer, " c", merge->chunk, " s",
                     merge->step, merge->parts.empty() ? " zeros" : "",
                     merge->rows > 0 ? StrCat(" of ", merge->rows) : "");
    } else if (const auto* run = std::get_if<pserver::RunAction>(&action)) {
      text += run->param < 0 ? StrCat("lr s", run->step, run->counts < 0 ? "" : StrCat(" for t", run->counts))
                             : StrCat("run c", run->chunk, " s", run->step);
    } else if (const auto* reply = std::get_if<pserver::ReplyAction>(&action)) {
      text += DescribeReply(*reply);
    } else if (const auto* save = std::get_if<pserver::SaveAction>(&action)) {
      text += StrCat("save t", save->save.trainer, " ", save->save.file);
    } else if (const auto* left = std::get_if<pserver::LeftAction>(&action)) {
      text += StrCat("left t", left->trainer, " s", left->steps);
    } else if (const auto* measure = std::get_if<pserver::MeasureAction>(&action)) {
      text += StrCat("measure c", measure->chunk, " s", measure->step);
    } else if (const auto* tell = std::get_if<pserver::TellSumsAction>(&action)) {
      text += StrCat("tell s", tell->step);
    } else if (const auto* combine = std::get_if<pserver::CombineAction>(&action)) {
      text += StrCat("combine s", combine->step);
      for (const Payload& sums : combine->sums) text += StrCat(" [", sums.ToText(), "]");
    } else if (const auto* cut = std::get_if<pserver::CutAction>(&action)) {
      text += cut->param < 0 ? StrCat("cut lr s", cut->step)
                             : StrCat("cut p", cut->param, " c", cut->chunk, " s", cut->step);
    } else if (const auto* write = std::get_if<pserver::WriteCutAction>(&action)) {
      text += StrCat("write s", write->step);
    } else {
      text += StrCat("end ", std::get<pserver::EndAction>(action).why.ok()
                                 ? "ok"
                                 : std::get<pserver::EndAction>(action).why.id());
    }
  }
  return text;
}

class Driver {
 public:
  explicit Driver(pserver::MachineConfig config)  // in sync mode
      : Driver(std::move(config), std::make_unique<pserver::SyncPolicy>()) {}
  Driver(pserver::MachineConfig config, std::unique_ptr<pserver::UpdatePolicy> policy)
      : machine(std::move(config), std::move(policy)) {}
  std::string Push(int trainer, std::uint64_t step, int chunk = 0) {
    return Do([&](pserver::Actions& out) {
      machine.Push({.trainer = trainer,
                    .param = 0,
                    .chunk = chunk,
                    .step = step,
                    .part = 0,
                    .bytes = Gradient(chunk == 0 ? 8 : 4)},
                   out);
    });
  }
  std::string PushInitial(int trainer) {
    return Do([&](pserver::Actions& out) {
      machine.Push({.trainer = trainer,
                    .param = 0,
                    .chunk = 0,
                    .step = 0,
                    .part = 0,
                    .bytes = Gradient(8),
                    .rows = 0,
                    .initial = true},
                   out);
    });
  }
  std::string Merged(int chunk = 0) {
    return Do([&](pserver::Actions& out) { machine.MergeDone(0, chunk, out); });
  }
  std::string Ran(int chunk = 0) {
    return Do([&](pserver::Actions& out) { machine.BlockDone(0, chunk, OkStatus(), out); });
  }
  std::string Copied() {
    return Do([&](pserver::Actions& out) { machine.CutCopied(out); });
  }
  // "again": not yet.
  std::string CutAt(std::uint64_t version) {
    bool begun = false;
    const std::string done = Do([&](pserver::Actions& out) { begun = machine.CutAt(version, out); });
    return begun ? done : "again";
  }
  std::string StopAt(std::uint64_t version) {
    return Do([&](pserver::Actions& out) { machine.StopAt(version, out); });
  }
  std::string RequestCut(int trainer, std::uint64_t step) {
    return Do([&](pserver::Actions& out) { machine.RequestCut(trainer, step, out); });
  }
  std::string Written(const Status& status = OkStatus()) {
    return Do([&](pserver::Actions& out) { machine.CutWritten(status, out); });
  }
  std::string LrRan() {
    return Do([&](pserver::Actions& out) { machine.BlockDone(-1, 0, OkStatus(), out); });
  }
  std::string Pull(int trainer, std::uint64_t version) {
    return Do([&](pserver::Actions& out) { machine.Pull(trainer, 0, 0, version, out); });
  }
  std::string EndStep(int trainer, std::uint64_t step, const std::set<int>& params = {0}) {
    return Do([&](pserver::Actions& out) { machine.EndStep(trainer, step, params, out); });
  }
  std::string Count(int trainer, std::uint64_t step) {
    return Do([&](pserver::Actions& out) { machine.CountStep(trainer, step, out); });
  }
  std::string Complete(int trainer) {
    return Do([&](pserver::Actions& out) { machine.Complete(trainer, out); });
  }
  template <typename Event>
  std::string Do(Event event) {
    pserver::Actions out;
    event(out);
    return Describe(out);
  }
  pserver::StateMachine machine;
};

}  // namespace penstock::test
