// What every pass gets beside the program it rewrites. A pass is a function from program to program: it reads
// the plan, makes its edits and decides nothing.
#pragma once

#include <string_view>

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/op/op_registry.h"
#include "transpiler/plan/analyse.h"
#include "transpiler/plan/plan.h"

namespace penstock {

// Who will run the result.
struct Self {
  enum class Role { kTrainer, kPserver };
  Role role = Role::kTrainer;
  int index = 0;
};

struct PassContext {
  const OpRegistry& ops;
  const Program& main;     // the user's, as analysed; pserver programs are made from it
  const Program& startup;  // the user's
  const Analysis& analysis;
  const PlacementPlan& plan;
  Self self;
};

using PassFunction = Result<Program> (*)(const Program& in, const PassContext& context);

// "send_gradients: no op writes ...": a plan that does not fit the program is the planner's mistake.
template <typename... Parts>
Status PassError(std::string_view pass, const Parts&... parts) {
  return InternalError(StrCat("E-pass-", pass), pass, ": ", parts...);
}

}  // namespace penstock
