// What a pserver reports to the user about waiting peers: after report_after (10 s) without progress, and at
// each doubling of that time.
#include <algorithm>

#include "executor/pserver/pserver.h"

namespace penstock::pserver {
namespace {

// The order of a trainer's events: a step, and a place in it. nullopt for events without a place.
using Place = std::pair<std::uint64_t, int>;
std::optional<Place> PlaceOf(const protocol::Event& event) {
  if (const auto* pull = std::get_if<protocol::Pull>(&event)) return Place{pull->version, 0};
  if (const auto* rows = std::get_if<protocol::PullRows>(&event)) return Place{rows->version, 1};
  if (const auto* push = std::get_if<protocol::Push>(&event)) return Place{push->step, 2};
  if (const auto* end = std::get_if<protocol::EndStep>(&event)) return Place{end->step, 3};
  return std::nullopt;
}

}  // namespace

// Neither an Ask nor a message that the trainer repeats while it waits is progress.
void Pserver::NoteActivity(Trainer& trainer, const protocol::Event& event) {
  trainer.heard = options_.clock->Now();
  if (std::holds_alternative<protocol::Ask>(event)) return;
  if (const std::optional<Place> place = PlaceOf(event)) {
    if (!trainer.waits_for.empty() && *place <= trainer.place) return;
    trainer.place = std::max(trainer.place, *place);
  }
  trainer.active = trainer.heard;
  trainer.waits_for.clear();
}

std::vector<Pserver::Progress> Pserver::ProgressOfTrainers() const {
  const std::lock_guard lock(mutex_);
  std::vector<Progress> progress;
  if (ended_.has_value() || facts_.mode != roles::ServeMode::kSync || machine_->backup_trainers() > 0)
    return progress;
  for (int t = 0; t < facts_.trainers; ++t)
    progress.push_back(
        {.steps_ended = machine_->steps_ended(t), .waits = !At(t).waits_for.empty(), .heard = At(t).heard});
  return progress;
}

std::string Pserver::Title() const {
  constexpr std::size_t kNamesTold = 3;
  std::string title = "the program that updates ";
  std::size_t updated = 0;
  for (const roles::ServedParam& each : facts_.params) {
    if (each.start) continue;
    if (updated++ < kNamesTold) title += StrCat(updated > 1 ? ", " : "", each.param.name);
  }
  return updated > kNamesTold ? StrCat(title, " and ", updated - kNamesTold, " more") : title;
}

std::string Pserver::ListOf(const std::vector<int>& trainers) {
  std::string list;
  for (const int t : trainers) list += StrCat(list.empty() ? "" : ", ", t);
  return list;
}

// "trainer 1, 2 and pserver 10.0.0.2:6174": what has not come yet.
std::string Pserver::Awaited() const {
  std::string awaited = ListOf(admission_.Awaited());
  if (!awaited.empty()) awaited.insert(0, "trainer ");
  for (const int server : others_.Awaited())
    awaited += StrCat(awaited.empty() ? "" : " and ", others_.NameOf(server));
  return awaited;
}

bool Pserver::EndIfStartIsLate(Nanoseconds now, const std::string& awaited) {
  if (awaited.empty() || now - started_ < options_.start_deadline) return false;
  const Status why =
      DeadlineExceeded("E-peer-absent", awaited, " did not start within ", WholeSeconds(now - started_),
                       " s (seen by pserver ", facts_.address, ")")
          .With(
              "it was not started, it has ended, or it had not run its startup program by then: see its log")
          .With(
              "note: the launcher's --start_s, PENSTOCK_START_S or fluid.Executor(start_s=...) sets this "
              "time");
  for (const int t : admission_.Awaited()) notes_.Lacks(t, 0, -1);
  if (options_.on_reaction) options_.on_reaction(why);
  Actions actions;
  machine_->Fail(why, actions);
  Execute(std::move(actions));
  return true;
}

void Pserver::ReportAwaited() {
  strangers_.Tick();
  if (ended_.has_value()) return;
  const Nanoseconds now = options_.clock->Now();
  const std::string awaited = Awaited();
  if (EndIfStartIsLate(now, awaited)) return;
  Nanoseconds since = started_;
  if (awaited.empty()) {
    for (const Trainer& trainer : trainers_) since = std::max(since, trainer.active);
  }
  if (now - since < options_.report_after) reports_ = observe::ReportTimes(options_.report_after);
  if (now - since < reports_.next()) return;
  const std::string text = awaited.empty() ? Waits(now) : "";
  if (awaited.empty() && text.empty()) return;
  while (now - since >= reports_.next()) reports_.Pass();
  if (awaited.empty()) {
    NoteLacking();
    return options_.report(StrCat("waiting on pserver ", facts_.address, ": ", text));
  }
  for (const int t : admission_.Awaited()) notes_.Lacks(t, 0, -1);
  for (const int server : others_.Awaited())
    others_.notes(server).Record(observe::EventKind::kWaitsFor, machine_->sums().over());
  options_.report(StrCat("waiting ", WholeSeconds(now - started_), " s on pserver ", facts_.address, ": for ",
                         awaited, " to start"));
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

// What the trainers have reported; if none has, what the server itself lacks.
std::string Pserver::Waits(Nanoseconds now) const {
  std::string told = TrainersWaiting(now);
  if (!told.empty()) return told;
  if (const std::string servers = LackingSums(); !servers.empty())
    return StrCat("step ", machine_->sums().over(), " lacks the sums of ", servers);
  if (std::string barrier = LackingBarrier(); !barrier.empty()) return barrier;
  const std::optional<ChunkId> at = FirstNotWhole();
  if (!at) return "";
  return StrCat("step ", machine_->version(at->param, at->chunk), " of ", machine_->name(at->param),
                " lacks ", Lacking(at->param, at->chunk));
}

// The first chunk whose next update lacks the gradients of some trainers but not of all.
std::optional<ChunkId> Pserver::FirstNotWhole() const {
  for (int param = 0; param < machine_->param_count(); ++param) {
    for (int chunk = 0; chunk < static_cast<int>(store_->chunk_count(param)); ++chunk) {
      const std::size_t lacking = machine_->Lacks(param, chunk).size();
      if (lacking > 0 && lacking < trainers_.size()) return ChunkId{param, chunk};
    }
  }
  return std::nullopt;
}

void Pserver::NoteLacking() const {
  for (const int server : machine_->sums().Lacks())
    others_.notes(server).Record(observe::EventKind::kWaitsFor, machine_->sums().over());
  const std::optional<ChunkId> at = FirstNotWhole();
  if (!at) return;
  for (const int t : machine_->Lacks(at->param, at->chunk))
    notes_.Lacks(t, machine_->version(at->param, at->chunk), at->param);
}

// "trainer 0 has waited 10 s for version 4 of w on ..."; empty if none has said that it waits.
std::string Pserver::TrainersWaiting(Nanoseconds now) const {
  std::string text;
  for (std::size_t t = 0; t < trainers_.size(); ++t) {
    const Trainer& trainer = trainers_[t];
    if (trainer.caller == nullptr || trainer.waits_for.empty()) continue;
    text += StrCat(text.empty() ? "" : "; ", "trainer ", t, " has waited ",
                   WholeSeconds(now - trainer.active), " s for ", trainer.waits_for);
  }
  return text;
}

// "trainer 3 (last heard 11 s ago)", or the servers whose sums the chunk waits for; empty if it waits for
// neither.
std::string Pserver::Lacking(int param, int chunk) const {
  std::string text;
  for (const int t : machine_->Lacks(param, chunk)) {
    if (!text.empty()) text += ", ";
    text += StrCat("trainer ", t, " (", StateOf(t), ")");
  }
  return text.empty() && machine_->WaitsForSums(param, chunk) ? LackingSums() : text;
}

std::string Pserver::StateOf(int id) const {
  const Trainer& trainer = At(id);
  const auto since = [&](Nanoseconds at) { return StrCat(WholeSeconds(options_.clock->Now() - at), " s"); };
  if (trainer.dead)
    return StrCat("its process ended ", since(trainer.dead->at), " ago, a new one is awaited");
  if (trainer.lost) return StrCat("out of reach for ", since(trainer.lost->at));
  return admission_.Admitted(id) ? StrCat("last heard ", since(trainer.heard), " ago") : "not started yet";
}

// "pserver 10.0.0.2:6174 (last heard 11 s ago)"
std::string Pserver::LackingSums() const {
  std::string text;
  for (const int server : machine_->sums().Lacks())
    text += StrCat(text.empty() ? "" : ", ", others_.Describe(server));
  return text;
}

}  // namespace penstock::pserver
