// A pserver that is started again by itself continues from its last own part of a checkpoint, and trainers
// send it the steps since then again.
#include "executor/pserver/pserver.h"

namespace penstock::pserver {

// Whether trainers keep for it what is not in a checkpoint.
bool Pserver::Recovers() const {
  return checkpoints_ != nullptr && checkpoints_->every() > 0 && options_.checkpoints.restarts_max > 0 &&
         !meets_servers() && options_.reconnect_deadline > Nanoseconds(0);
}

void Pserver::BeginRecovery(MachineConfig& config) {
  config.recovers = Recovers();
  config.restarted = coming_back_ = config.recovers && options_.checkpoints.restarts > 0;
  if (config.restarted) {
    config.first_version = checkpoints_->restored_step() - checkpoints_->first_step();
    store_->BeginAt(config.first_version);
  }
  if (meets_servers() && options_.checkpoints.restarts_max > 0 && options_.on_fixed)
    options_.on_fixed("pservers that clip by a norm over all gradients take each step together");
}

void Pserver::On(const From& from, const protocol::RequestCut& request, Actions& actions) {
  machine_->RequestCut(from.trainer, request.step, actions);
}

void Pserver::ReportIfBack() {
  if (!coming_back_ || !admission_.Awaited().empty() || !machine_->HasCaughtUp()) return;
  coming_back_ = false;
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

}  // namespace penstock::pserver
