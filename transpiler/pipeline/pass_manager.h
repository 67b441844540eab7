// Runs the passes of a pipeline in order. After each pass it verifies the changed parts, records the time and
// calls the observer. An error names the pass, and the reproducer gets a text from which the failure can be
// repeated.
//
//   PassManager manager({.clock = &SystemClock()});
//   PENSTOCK_ASSIGN_OR_RETURN(Program trainer, manager.Run("sync trainer", kSyncTrainer, main, context));
//   manager.timings()   "sync trainer", "send_gradients", 120us ...
#pragma once

#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/base/thread_pool.h"
#include "framework/runtime/clock.h"
#include "transpiler/passes/context.h"

namespace penstock {

struct Pass {
  std::string_view name;
  passes::PassFunction run;
  // Whether the pass belongs to the pipeline of this plan; null: it does.
  bool (*when)(const plan::PlacementPlan& plan) = nullptr;

  Result<Program> Run(const Program& in, const passes::PassContext& context) const {
    return when == nullptr || when(context.plan) ? run(in, context) : in;
  }
};

struct PassTiming {
  std::string pipeline;
  std::string pass;
  Nanoseconds took{0};
};

// The argument of an observer after each pass. `before` and `after` have equal content if the pass changed
// nothing, or does not belong to the plan.
struct PassEvent {
  std::string_view pipeline;
  std::string_view pass;
  int index = 0;  // the trainer's id, or the pserver's position
  const Program& before;
  const Program& after;
  std::string RoleName() const;  // "pserver_startup_1"
  bool changed() const { return before.content_id() != after.content_id(); }
};

struct PassOptions {
  // Makes roles in parallel on these threads, unless a clock, observer or reproducer is set. The results are
  // the same. Null: the caller's thread.
  ThreadPool* threads = nullptr;
  const Clock* clock = nullptr;                   // null: no timings
  std::set<std::string> disabled;                 // passes to skip, to find the one at fault
  std::function<void(const PassEvent&)> observe;  // called after each pass, for dumps
  std::function<void(const std::string&)>
      reproducer;  // called on failure with a text: program, plan, remaining passes
};

class PassManager {
 public:
  explicit PassManager(PassOptions options = {}) : options_(std::move(options)) {}

  // Returns the program after all passes. Errors: those of the passes, and E-verify-* for an invalid result;
  // both name the pass.
  Result<Program> Run(std::string_view pipeline, std::span<const Pass> passes, Program program,
                      const passes::PassContext& context);

  const std::vector<PassTiming>& timings() const { return timings_; }

 private:
  Result<Program> RunOne(std::string_view pipeline, const Pass& pass, const Program& in,
                         const passes::PassContext& context);

  PassOptions options_;
  std::vector<PassTiming> timings_;
};

}  // namespace penstock
