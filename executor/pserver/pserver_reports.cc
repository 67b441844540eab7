// What a pserver says to people of those who wait.
#include "executor/pserver/pserver.h"

namespace penstock::pserver {
namespace {

constexpr Nanoseconds kReportAfter = std::chrono::seconds(10);

}  // namespace

std::string Pserver::ListOf(const std::vector<int>& trainers) {
  std::string list;
  for (const int t : trainers) list += StrCat(list.empty() ? "" : ", ", t);
  return list;
}

void Pserver::ReportAwaited() {
  strangers_.Tick();
  if (ended_.has_value()) return;
  const Nanoseconds now = options_.clock->Now();
  if (now - reported_ < kReportAfter) return;
  const std::vector<int> awaited = admission_.Awaited();
  if (!awaited.empty()) {
    reported_ = now;
    options_.report(StrCat("waiting ", WholeSeconds(now - started_), " s on pserver ", facts_.address,
                           ": for trainer ", ListOf(awaited), " to start"));
    return;
  }
  const std::string waiting = TrainersWaiting(now);
  if (waiting.empty()) return;
  reported_ = now;
  options_.report(StrCat("waiting on pserver ", facts_.address, ": ", waiting));
}

void Pserver::ReportLate() const {
  std::string late;
  for (int t = 0; t < facts_.trainers; ++t) {
    if (const std::uint64_t steps = machine_->late_steps(t); steps > 0)
      late += StrCat(late.empty() ? "" : ", ", steps, " of trainer ", t);
  }
  if (!late.empty())
    options_.report(
        StrCat("pserver ", facts_.address, " dropped the gradients of steps that came late: ", late));
}

// "trainer 0 waits for trainer 1 (last heard 11 s ago)"; empty unless a trainer has said so lately and none
// has sent anything for a while.
std::string Pserver::TrainersWaiting(Nanoseconds now) const {
  std::string text;
  for (std::size_t t = 0; t < trainers_.size(); ++t) {
    const Trainer& trainer = trainers_[t];
    if (trainer.caller == nullptr) continue;
    if (now - trainer.active < kReportAfter) return "";
    if (trainer.waits_for.empty() || now - trainer.waits_said > 2 * kReportAfter) continue;
    text += StrCat(text.empty() ? "" : "; ", "trainer ", t, " has waited ",
                   WholeSeconds(now - trainer.active), " s for ", trainer.waits_for);
  }
  return text;
}

// "trainer 3 (last heard 11 s ago)"; empty if the chunk waits for nobody.
std::string Pserver::Lacking(int param, int chunk) const {
  std::string text;
  for (const int t : machine_->Lacks(param, chunk)) {
    const Trainer& trainer = At(t);
    if (!text.empty()) text += ", ";
    text +=
        StrCat("trainer ", t,
               admission_.Admitted(t)
                   ? StrCat(" (last heard ", WholeSeconds(options_.clock->Now() - trainer.heard), " s ago)")
                   : std::string(" (not started yet)"));
  }
  return text;
}

}  // namespace penstock::pserver
