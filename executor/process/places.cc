#include "executor/process/places.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>

#include "executor/process/place_threads.h"
#include "framework/ir/block_uses.h"
#include "framework/roles/collective_views.h"

namespace penstock::process {
namespace {

constexpr char kReaderEnded[] = "E-read-end";

std::vector<CollectiveRings*> PointersTo(const std::vector<std::unique_ptr<PlaceRings>>& rings) {
  std::vector<CollectiveRings*> out;
  out.reserve(rings.size());
  for (const auto& of_place : rings) out.push_back(of_place.get());
  return out;
}

}  // namespace

Result<std::unique_ptr<Places>> Places::Make(const OpRegistry& ops, const PlacesOptions& options) {
  std::unique_ptr<Places> made(new Places(options.places));
  PENSTOCK_ASSIGN_OR_RETURN(made->rings_, MakePlaceRings(options.places));
  made->executor_ = std::make_unique<exec::Executor>(
      ops, exec::ExecutorOptions{
               .threads = options.threads, .places = PointersTo(made->rings_), .timer = options.timer});
  return made;
}

Places::~Places() = default;

// Replaces the rings that an error of the last run has ended. Without the lock: kernels are destroyed here,
// and may wait for other locks.
Status Places::ReplaceEndedRings() {
  if (failure_.ok()) return OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(auto rings, MakePlaceRings(places_));
  executor_->ReplaceRings(PointersTo(rings));
  rings_ = std::move(rings);
  failure_ = OkStatus();
  return OkStatus();
}

Status Places::Start(std::size_t parts) {
  {
    const std::lock_guard lock(mutex_);
    state_ = State::kStarting;
    cancelled_ = OkStatus();
  }
  Status status = ReplaceEndedRings();
  const std::lock_guard lock(mutex_);
  if (status.ok()) status = cancelled_;
  failed_ = false;
  state_ = status.ok() ? State::kRunning : State::kIdle;
  turns_ = std::make_unique<ReadTurns>(static_cast<int>(parts));
  return status;
}

// All places run the same compiled form, if they are fed the same names.
Result<std::vector<exec::Executor::Compiled>> Places::Compile(const Program& program,
                                                              std::span<const std::string> fetches,
                                                              std::span<const PlacePart> parts) {
  std::vector<exec::Executor::Compiled> compiled;
  for (const PlacePart& part : parts) {
    compiled.push_back(executor_->FindCompiled(program, part.feeds, fetches));
    if (compiled.back() != nullptr) continue;
    PENSTOCK_ASSIGN_OR_RETURN(compiled.back(), executor_->Compile(program, part.feeds, fetches));
  }
  return compiled;
}

Status Places::Run(const Program& program, std::span<const std::string> fetches, std::span<PlacePart> parts,
                   PlacesAre are) {
  const auto places = static_cast<std::size_t>(places_);
  if (parts.empty() || parts.size() > places || (are == PlacesAre::kTogether && parts.size() < places)) {
    return InvalidArgument("E-collective-size", places_, " places are given ", parts.size(),
                           " parts of a batch");
  }
  PENSTOCK_RETURN_IF_ERROR(Start(parts.size()));
  Status status = RunStarted(program, fetches, parts, are);
  const std::lock_guard lock(mutex_);
  state_ = State::kIdle;
  return status;
}

Status Places::RunStarted(const Program& program, std::span<const std::string> fetches,
                          std::span<PlacePart> parts, PlacesAre are) {
  PENSTOCK_ASSIGN_OR_RETURN(const auto compiled, Compile(program, fetches, parts));
  const LentPlaceThreads threads;
  const Status started = threads->Run(parts.size(), [&](std::size_t place) {
    const ReadTurns::Member here(*turns_, static_cast<int>(place));
    RunPart(static_cast<int>(place), compiled[place], parts[place], are);
  });
  if (!started.ok()) Fail(started);
  {
    const std::lock_guard lock(mutex_);
    PENSTOCK_RETURN_IF_ERROR(failure_);
  }
  const std::vector<Variable>& shared = parts.front().values;
  for (PlacePart& part : parts.subspan(1)) {
    for (std::size_t i = 0; i < part.values.size() && i < shared.size(); ++i) {
      if (!part.values[i].initialized()) part.values[i] = shared[i];
    }
  }
  const bool all_ended =
      std::ranges::none_of(parts, [](const PlacePart& part) { return part.end_of_reader.ok(); });
  return all_ended ? parts.front().end_of_reader : OkStatus();
}

void Places::RunPart(int place, const exec::Executor::Compiled& compiled, PlacePart& part, PlacesAre are) {
  const std::function<bool()> failed = [this] { return failed_.load(std::memory_order_relaxed); };
  Result<std::vector<Variable>> values = executor_->RunAt(place, compiled, *part.scope, part.feeds, failed);
  if (values.ok()) {
    part.values = *std::move(values);
  } else if (are == PlacesAre::kApart && values.status().id() == kReaderEnded) {
    part.end_of_reader = values.status();
  } else {
    Fail(values.status());
  }
}

void Places::Cancel(const Status& why) {
  const std::lock_guard lock(mutex_);
  if (state_ == State::kStarting) cancelled_ = why;
  if (state_ != State::kRunning) return;
  FailLocked(why);
  executor_->Cancel();
}

std::set<std::string> WrittenAtEachPlace(const Program& program) {
  std::set<std::string> written;
  std::set<int> seen = {0};
  std::vector<int> blocks = {0};
  while (!blocks.empty()) {
    const int at = blocks.back();
    blocks.pop_back();
    for (const OpEntry& entry : program.block(at).ops()) {
      if (roles::IsOfFirstPlace(*entry.op)) continue;
      for (const std::string& name : entry.op->OutputNames()) written.insert(name);
      for (const int started : StartedBlocks(*entry.op)) {
        const bool exists = started >= 0 && started < program.block_count();
        if (exists && seen.insert(started).second) blocks.push_back(started);
      }
    }
  }
  return written;
}

// The first error is that of the run: it ends the waits of all places, which fail because of it.
void Places::Fail(const Status& why) {
  const std::lock_guard lock(mutex_);
  FailLocked(why);
}

void Places::FailLocked(const Status& why) {
  if (!failure_.ok()) return;
  failure_ = why;
  failed_ = true;
  for (const auto& rings : rings_) rings->Abort(why);
  turns_->Abort();
}

}  // namespace penstock::process
