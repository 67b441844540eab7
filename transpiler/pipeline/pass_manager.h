// Runs the passes of a pipeline in their order: each result is verified where the pass touched it, timed, and
// shown to whoever observes. A failure names the pass and leaves what is needed to repeat it.
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
};

struct PassTiming {
  std::string pipeline;
  std::string pass;
  Nanoseconds took{0};
};

// What an observer sees after each pass; `before` and `after` are the same content if the pass changed
// nothing.
struct PassEvent {
  std::string_view pipeline;
  std::string_view pass;
  int index = 0;  // of the role: the trainer's id, or the pserver's position
  const Program& before;
  const Program& after;
  std::string RoleName() const;  // "pserver_startup_1"
  bool changed() const { return before.content_id() != after.content_id(); }
};

struct PassOptions {
  // Roles are made side by side on these, unless a field below watches the passes. Changes speed alone; none:
  // the caller's thread.
  ThreadPool* threads = nullptr;
  const Clock* clock = nullptr;                   // none: nothing is timed
  std::set<std::string> disabled;                 // passes that are left out, to find the one at fault
  std::function<void(const PassEvent&)> observe;  // dumps
  std::function<void(const std::string&)>
      reproducer;  // given a text on failure: program, plan, remaining passes
};

class PassManager {
 public:
  explicit PassManager(PassOptions options = {}) : options_(std::move(options)) {}

  // The errors of the passes, and E-verify-* of what they made; both say which pass.
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
