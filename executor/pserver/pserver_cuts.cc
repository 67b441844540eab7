// Checkpoints of a job without an interval: the first server finds when one is due, and all agree on its step
// (checkpoint/cut_request.h).
#include <algorithm>

#include "executor/pserver/pserver.h"
#include "executor/pserver/pserver_guard.h"

namespace penstock::pserver {

// When the last one is whole, and the share of the time is over for the slowest server, too.
bool Pserver::CutIsDue(Nanoseconds now) {
  if (!checkpoints_->is_first() || !cut_clock_.IsDue(now)) return false;
  if (agreed_step_ == 0) return true;
  const std::optional<Checkpoints::Newest> newest = checkpoints_->FindNewest();
  if (!newest || newest->step < agreed_step_) return false;
  if (newest->took_ms <= slowest_ms_) return true;
  slowest_ms_ = newest->took_ms;
  cut_clock_.Took(now, std::chrono::milliseconds(slowest_ms_));
  return cut_clock_.IsDue(now);
}

void Pserver::LookForCut() {
  const bool has_interval = checkpoints_ == nullptr || !options_.checkpoints.share;
  if (has_interval || stopping_ != Stopping::kNo || Ended().has_value()) return;
  const Nanoseconds now = options_.clock->Now();
  const std::uint64_t first = checkpoints_->first_step();
  checkpoint::CutRequest& cut = checkpoints_->cut();
  std::uint64_t begun = 0;
  Decide([&] { begun = machine_->steps_begun(); });
  cut_clock_.Steps(now, begun);
  if (!holds_for_cut_) {
    if (first + begun > agreed_step_ && CutIsDue(now)) {
      if (const Status asked = cut.Ask(); !asked.ok()) return Fail(asked);
    }
    if (!cut.Asked()) return;
    std::uint64_t limit = 0;
    Decide([&] { limit = machine_->HoldUpdates(cut_clock_.Ahead()); });
    if (const Status answered = cut.Answer(first + limit); !answered.ok()) return Fail(answered);
    holds_for_cut_ = true;
  }
  const std::optional<std::uint64_t> step = cut.Step();
  Decide([&] {
    Actions actions;
    if (step) {
      holds_for_cut_ = !machine_->CutAt(*step - first, actions);
    } else if (HaveAllCompleted()) {  // other servers may have ended, and will not answer
      machine_->CutAt(0, actions);
    }
    Execute(std::move(actions));
  });
  if (!step || holds_for_cut_) return;
  agreed_step_ = *step;
  cut.Done();
}

bool Pserver::HaveAllCompleted() const {
  for (int t = 0; t < facts_.trainers; ++t) {
    if (!machine_->completed(t)) return false;
  }
  return true;
}

}  // namespace penstock::pserver
