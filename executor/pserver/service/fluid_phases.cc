#include "executor/pserver/service/fluid_phases.h"

namespace penstock::pserver {

bool FluidPhases::Barrier(const std::string& who) {
  barriers_.insert(who);
  return EndIfAll();
}

bool FluidPhases::Complete(const std::string& who) {
  --trainers_;
  if (const auto sent = barriers_.find(who); sent != barriers_.end()) barriers_.erase(sent);
  return EndIfAll();
}

bool FluidPhases::EndIfAll() {
  if (trainers_ == 0 || barriers_.size() < trainers_) return false;
  barriers_.clear();
  if (now_ == FluidPhase::kSend) ++step_;
  now_ = now_ == FluidPhase::kGet ? FluidPhase::kSend : FluidPhase::kGet;
  return true;
}

}  // namespace penstock::pserver
