// Runs a program on several places of this process at once, each with its part of a batch: frames of one
// plan, on threads that are kept.
//
//   PENSTOCK_ASSIGN_OR_RETURN(const auto places, Places::Make(AllOps(), {.places = 2, .threads = 1}));
//   std::vector<PlacePart> parts = {{.scope = &scope, .feeds = ...}, {.scope = &scope_of_second, ...}};
//   Status failed = places->Run(program, fetches, parts, PlacesAre::kTogether);
//   ... parts[1].values ...
//
// The program is the same for all places. The first place also runs the ops that update what the places share
// (roles::IsOfFirstPlace). Place r is rank r of every ring (place_rings.h), so the ops between places need no
// program of their own.
//
// One run at a time. Cancel may come from any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "executor/process/place_rings.h"
#include "executor/schedule/executor.h"
#include "framework/base/status.h"
#include "framework/runtime/read_turns.h"

namespace penstock::process {

struct PlacesOptions {
  int places = 2;
  int threads = 1;                 // of each place
  exec::OpTimer* timer = nullptr;  // as of exec::ExecutorOptions
};

// What one place runs in a step, and what it has computed.
struct PlacePart {
  Scope* scope = nullptr;  // holds the place's own state; a parent holds what all places share
  std::vector<exec::Feed> feeds;
  // The value of each fetch. Where only the first place has one, such as a parameter, it is that value.
  std::vector<Variable> values = {};
  Status end_of_reader = {};  // with kApart, if the place's reader has no more data; values is then empty
};

enum class PlacesAre {
  kTogether,  // every place takes part, and the first error is that of all
  kApart,     // they exchange nothing: some may be missing, or their readers end before others'
};

class Places {
 public:
  // kInvalidArgument E-collective-size: not 1 to 256 places.
  static Result<std::unique_ptr<Places>> Make(const OpRegistry& ops, const PlacesOptions& options);
  ~Places();

  // Runs a step with the parts of the first places. An error of one place ends the waits of all others and is
  // the error of the run; the next run works again. With kApart, the end of a reader is an error only if the
  // readers of all places have ended.
  Status Run(const Program& program, std::span<const std::string> fetches, std::span<PlacePart> parts,
             PlacesAre are);

  // Ends the run in progress with `why`; no effect if there is none.
  void Cancel(const Status& why);

  exec::ExecutorStats stats() const { return executor_->stats(); }

 private:
  explicit Places(int places) : places_(places) {}
  Status ReplaceEndedRings();
  Status Start(std::size_t parts);
  Result<std::vector<exec::Executor::Compiled>> Compile(const Program& program,
                                                        std::span<const std::string> fetches,
                                                        std::span<const PlacePart> parts);
  void RunPart(int place, const exec::Executor::Compiled& compiled, PlacePart& part, PlacesAre are);
  Status RunStarted(const Program& program, std::span<const std::string> fetches, std::span<PlacePart> parts,
                    PlacesAre are);
  void Fail(const Status& why);
  void FailLocked(const Status& why);

  const int places_;
  std::vector<std::unique_ptr<PlaceRings>> rings_;
  std::unique_ptr<exec::Executor> executor_;  // its kernels use the rings

  enum class State { kIdle, kStarting, kRunning };
  // Guards what follows; while the state is kRunning, also rings_ and the executor's. At other times the
  // thread that calls Run has them for itself. Held before the locks of the rings.
  std::mutex mutex_;
  State state_ = State::kIdle;
  Status cancelled_;                  // by a Cancel while the run was starting
  Status failure_;                    // of the run in progress, or of the last one
  std::atomic<bool> failed_ = false;  // whether it has failed: the places look before each op
  std::unique_ptr<ReadTurns> turns_;  // of the run in progress: place r reads the r-th next batch
};

// The names of the variables that ops of every place write, in the blocks that these ops run too. State among
// them belongs to each place; all places share the rest.
std::set<std::string> WrittenAtEachPlace(const Program& program);

}  // namespace penstock::process
