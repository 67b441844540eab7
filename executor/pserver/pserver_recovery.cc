// A pserver that is started again by itself continues from its last own part of a checkpoint, and trainers
// send it the steps since then again.
#include "executor/pserver/pserver.h"

namespace penstock::pserver {

// Whether trainers keep for it what is not in a checkpoint.
bool Pserver::Recovers() const {
  return checkpoints_ != nullptr && checkpoints_->every() > 0 && options_.checkpoints.restarts_max > 0 &&
         !meets_servers() && !checkpoints_->is_geo() && options_.reconnect_deadline > Nanoseconds(0);
}

void Pserver::BeginRecovery(MachineConfig& config) {
  config.recovers = Recovers();
  config.restarted = coming_back_ = config.recovers && options_.checkpoints.restarts > 0;
  if (checkpoints_->by_trainer()) {
    config.starts = checkpoints_->starts();
    config.first_cut = checkpoints_->restored_step();
    // At least the number of updates of any chunk.
    std::uint64_t updates = checkpoints_->restored_step() > 0 ? 1 : 0;
    for (const MachineConfig::Start& start : config.starts) updates += start.first_step + start.taken;
    config.first_version = updates;
    store_->BeginAt(updates);
    if (updates > 0) store_->NoteAllRows();
  } else if (config.restarted) {
    config.first_version = checkpoints_->restored_step() - checkpoints_->first_step();
    store_->BeginAt(config.first_version);
  }
  if (options_.checkpoints.restarts_max == 0 || !options_.on_fixed) return;
  if (meets_servers())
    options_.on_fixed("pservers that clip by a norm over all gradients take each step together");
  if (checkpoints_->is_geo()) options_.on_fixed("a job of geo-SGD continues as a whole");
}

// Its steps that this server began with, which it need not send.
std::uint64_t Pserver::StartOf(int trainer) const {
  if (!checkpoints_->by_trainer()) return checkpoints_->restored_step() - checkpoints_->first_step();
  return checkpoints_->starts()[static_cast<std::size_t>(trainer)].Durable(!facts_.counters.empty());
}

void Pserver::On(const From& from, const protocol::RequestCut& request, Actions& actions) {
  machine_->RequestCut(from.trainer, request.step, actions);
}

void Pserver::ReportIfBack() {
  if (!coming_back_ || !admission_.Awaited().empty() || !machine_->HasCaughtUp()) return;
  coming_back_ = false;
  if (checkpoints_->by_trainer()) return ReportBackByTrainer();
  const std::uint64_t restored = checkpoints_->restored_step();
  std::uint64_t last = restored;
  for (int t = 0; t < facts_.trainers; ++t)
    last = std::max(last, checkpoints_->first_step() + machine_->steps_ended(t));
  const std::string from = restored == 0 ? std::string("it began again with its initial values")
                                         : StrCat("it continued from its checkpoint of step ", restored);
  const std::string again =
      last == restored ? std::string(", and lacked no step")
                       : StrCat(", and took steps ", restored + 1, " to ", last, " again from the trainers");
  const std::string what = StrCat(from, again, "; no other process stepped back");
  options_.report(StrCat("pserver ", facts_.address, " is back: ", what));
  if (options_.on_back) options_.on_back(what);
}

// In asynchronous training each trainer has sent steps of its own again.
void Pserver::ReportBackByTrainer() {
  const std::uint64_t restored = checkpoints_->restored_step();
  std::uint64_t again = 0;
  for (int t = 0; t < facts_.trainers; ++t) {
    const MachineConfig::Start& start = checkpoints_->starts()[static_cast<std::size_t>(t)];
    again += machine_->steps_ended(t) - std::min(machine_->steps_ended(t), start.taken);
  }
  const std::string from = restored == 0 ? std::string("it began again with its initial values")
                                         : StrCat("it continued from its checkpoint of step ", restored);
  const std::string what = StrCat(from, ", and took ", again, " steps again from the trainers: lost 0, ",
                                  "repeated 0; no other process stepped back");
  options_.report(StrCat("pserver ", facts_.address, " is back: ", what));
  if (options_.on_back) options_.on_back(what);
}

}  // namespace penstock::pserver
