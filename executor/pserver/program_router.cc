#include "executor/pserver/program_router.h"

#include <algorithm>
#include <utility>

namespace penstock::pserver {

Pserver& ProgramRouter::Choose(const protocol::Sender& sender, const protocol::Event& event) const {
  const auto* of_trainer = std::get_if<protocol::Hello>(&event);
  const auto* of_server = std::get_if<protocol::ServerHello>(&event);
  if (of_trainer == nullptr && of_server == nullptr) return *pservers_.front();
  const protocol::HelloBody& hello = of_trainer != nullptr ? of_trainer->body : of_server->body;
  const auto same = std::find_if(pservers_.begin(), pservers_.end(), [&](const Pserver* each) {
    return !hello.job_facts.empty() && each->job_facts() == hello.job_facts;
  });
  if (same != pservers_.end()) return **same;
  const auto fits = std::find_if(pservers_.begin(), pservers_.end(), [&](const Pserver* each) {
    return of_trainer != nullptr && each->Fits(sender, hello);
  });
  return fits != pservers_.end() ? **fits : *pservers_.front();
}

Pserver& ProgramRouter::Of(const std::shared_ptr<Caller>& from, const protocol::Sender& sender,
                           const protocol::Event& event) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = chosen_.find(from.get()); known != chosen_.end()) return *known->second;
  }
  Pserver& chosen = Choose(sender, event);  // not under the lock: it takes those of the pservers
  const std::lock_guard lock(mutex_);
  return *chosen_.emplace(from.get(), &chosen).first->second;
}

void ProgramRouter::OnEvent(const std::shared_ptr<Caller>& from, const protocol::Sender& sender,
                            protocol::Event event) {
  Pserver& pserver = Of(from, sender, event);
  pserver.OnEvent(from, sender, std::move(event));
}

void ProgramRouter::OnUnreadable(const std::shared_ptr<Caller>& from, const Status& why) {
  Pserver* pserver = pservers_.front();
  {
    const std::lock_guard lock(mutex_);
    pserver = chosen_.emplace(from.get(), pserver).first->second;
  }
  pserver->OnUnreadable(from, why);
}

void ProgramRouter::OnClosed(const std::shared_ptr<Caller>& from, const Status& why) {
  Pserver* pserver = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto known = chosen_.find(from.get());
    if (known == chosen_.end()) return;
    pserver = known->second;
    chosen_.erase(known);
  }
  pserver->OnClosed(from, why);
}

void ProgramRouter::OnNoMemory() {
  for (Pserver* each : pservers_) each->OnNoMemory();
}

}  // namespace penstock::pserver
