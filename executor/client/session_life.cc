// How a session ends; its periodic work (Tick); its reports of what it waits for.
#include <algorithm>

#include "executor/client/session.h"
#include "executor/protocol/any_step.h"

namespace penstock::client {

Status Session::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

int Session::trainer() const {
  const std::lock_guard lock(mutex_);
  return trainer_;
}

// A server that updates nothing names no step. Others differ by at most one, unless one has lost its last
// steps.
bool Session::Join() {
  if (steps_.joined()) return true;
  const std::lock_guard lock(mutex_);
  if (links_.empty()) return true;  // the program uses no server
  using Named = std::pair<std::uint64_t, const Link*>;
  std::optional<Named> lowest, highest;
  for (const auto& [address, link] : links_) {
    const std::optional<std::uint64_t> named = link->named_step();
    if (!named) return false;
    if (*named == protocol::kAnyStep) continue;
    if (!lowest || *named < lowest->first) lowest = Named{*named, link.get()};
    if (!highest || *named > highest->first) highest = Named{*named, link.get()};
  }
  const bool repeats = options_.joins == Joins::kAtLowest;
  if (lowest && repeats && highest->first > lowest->first + 1) {
    Fail(FailedPrecondition("E-resume-step", "pserver ", highest->second->address(), " has had ",
                            highest->first, " steps of trainer ", trainer_, ", pserver ",
                            lowest->second->address(), " has had ", lowest->first,
                            "; the process that sent those in between has died")
             .With("restart the job from its last checkpoint"),
         false);
    return false;
  }
  const std::uint64_t step = !lowest ? 0 : repeats ? lowest->first : highest->first;
  steps_.Join(step);
  for (const auto& [address, link] : links_) link->Joined();
  if (step > 0)
    options_.report(StrCat("this trainer takes the place of one that has died, and begins with step ", step));
  if (options_.observer != nullptr) options_.observer->SetSteps(step);
  if (options_.on_joined) options_.on_joined(step);
  return true;
}

void Session::Close() {
  const std::lock_guard lock(mutex_);
  for (const auto& [address, link] : links_) link->Close();
}

void Session::Abort() {
  const std::lock_guard lock(mutex_);
  for (const auto& [address, link] : links_) link->Abort();
}

bool Session::AllClosed() const {
  const std::lock_guard lock(mutex_);
  return std::all_of(links_.begin(), links_.end(),
                     [](const auto& entry) { return entry.second->IsClosed(); });
}

Status Session::Complete() {
  const std::lock_guard lock(mutex_);
  PENSTOCK_RETURN_IF_ERROR(status_);
  if (std::exchange(completing_, true)) return OkStatus();
  if (ends_steps_ && (open_ || counted_)) EndOpenStep();
  for (const auto& [address, link] : links_) link->Complete();
  return OkStatus();
}

bool Session::CompleteDone() const {
  const std::lock_guard lock(mutex_);
  return CompleteDoneLocked();
}

void Session::Cancel() {
  const std::lock_guard lock(mutex_);
  if (!CompleteDoneLocked()) Fail(Cancelled("E-cancelled", "cancelled in step ", step()), false);
}

void Session::Abandon(const Status& why) {
  const std::lock_guard lock(mutex_);
  if (!CompleteDoneLocked()) Fail(why, false);
}

void Session::OnLinkFailure(Status why, bool by_peer) {
  const std::lock_guard lock(mutex_);
  Fail(std::move(why), by_peer);
}

void Session::Fail(Status why, bool by_peer) {
  if (!status_.ok()) return;
  if (by_peer && options_.on_reaction) options_.on_reaction(why);
  status_ = std::move(why);
  // Tells every server why this trainer ends.
  for (const auto& [address, link] : links_) link->End(status_);
  options_.on_change();
}

// Every server sends this message; it is reported once.
void Session::OnLeft(const protocol::Left& left) {
  const std::lock_guard lock(mutex_);
  if (!left_.insert(left.trainer).second) return;
  options_.report(StrCat("trainer ", left.trainer, " completed at step ", left.steps,
                         "; this trainer continues at step ", step(),
                         ", and pservers count the missing gradients as zeros"));
}

void Session::Tick() {
  const std::lock_guard lock(mutex_);
  if (!status_.ok()) return;
  for (const auto& [address, link] : links_) {
    Status late = link->Tick();
    if (!late.ok()) return Fail(std::move(late), true);
  }
}

void Session::Ask() {
  const std::lock_guard lock(mutex_);
  const std::string waiting_for = FirstWaiting().text;
  for (const auto& [address, link] : links_) link->Ask(waiting_for);
}

std::string Session::WaitingFor() const {
  const std::lock_guard lock(mutex_);
  return FirstWaiting().text;
}

std::string Session::ReportWait() const {
  const std::lock_guard lock(mutex_);
  const Link::Waiting waiting = FirstWaiting();
  waiting.notes.Record(observe::EventKind::kWaitsFor, step(), waiting.variable);
  if (waiting.urgency == Link::Urgency::kNone || waiting.urgency == Link::Urgency::kNoWelcome)
    return waiting.text;
  return StrCat(waiting.text, "; that server was last heard ", WholeSeconds(waiting.silent), " s ago");
}

Link::Waiting Session::FirstWaiting() const {
  Link::Waiting first;
  for (const auto& [address, link] : links_) {
    Link::Waiting waiting = link->WaitsFor();
    if (waiting.urgency < first.urgency) first = std::move(waiting);
  }
  return first;
}

}  // namespace penstock::client
