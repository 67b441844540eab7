#include "executor/pserver/program_order.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>

namespace penstock::pserver {
namespace {

using Progress = std::vector<Pserver::Progress>;  // by trainer

struct RunPlace {
  std::size_t program = 0;
  std::uint64_t steps = 0;  // ended there
  bool waits = false;
};

// Where each waiting trainer waits for others. It runs one program at a time: the one of which it was heard
// last. What it has said of another program may be old.
std::map<int, RunPlace> WaitingIn(const std::vector<Progress>& programs) {
  std::map<int, std::pair<Nanoseconds, RunPlace>> last;
  for (std::size_t program = 0; program < programs.size(); ++program) {
    for (std::size_t t = 0; t < programs[program].size(); ++t) {
      const Pserver::Progress& each = programs[program][t];
      const auto [found, first] = last.try_emplace(static_cast<int>(t));
      if (first || each.heard > found->second.first)
        found->second = {each.heard, {.program = program, .steps = each.steps_ended, .waits = each.waits}};
    }
  }
  std::map<int, RunPlace> waiting;
  for (const auto& [trainer, heard] : last)
    if (heard.second.waits) waiting[trainer] = heard.second;
  return waiting;
}

// Whether the trainer's step lacks one that waits in another program.
bool NeedsAnother(int trainer, const std::map<int, RunPlace>& waiting,
                  const std::vector<Progress>& programs) {
  const RunPlace& here = waiting.at(trainer);
  return std::any_of(waiting.begin(), waiting.end(), [&](const auto& other) {
    return other.first != trainer && other.second.program != here.program &&
           programs[here.program][static_cast<std::size_t>(other.first)].steps_ended < here.steps;
  });
}

}  // namespace

std::optional<Status> OrderError(const std::vector<const Pserver*>& programs) {
  std::vector<Progress> progress;
  progress.reserve(programs.size());
  for (const Pserver* each : programs) progress.push_back(each->ProgressOfTrainers());
  std::map<int, RunPlace> waiting = WaitingIn(progress);
  // Those that remain wait for each other, directly or in a ring.
  while (std::erase_if(waiting,
                       [&](const auto& one) { return !NeedsAnother(one.first, waiting, progress); }) > 0) {
  }
  if (waiting.empty()) return std::nullopt;
  Status status = FailedPrecondition("E-plan-order", "the trainers run the programs of the job in different ",
                                     "orders, and wait for each other");
  for (const auto& [trainer, place] : waiting) {
    status.With(StrCat("trainer ", trainer, " waits in step ", place.steps - 1, " of ",
                       programs[place.program]->Title()));
  }
  return std::move(status).With("run the programs in one order on every trainer, as often as each other");
}

}  // namespace penstock::pserver
