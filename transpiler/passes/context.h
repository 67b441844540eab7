// The arguments of every pass in addition to the program that it rewrites. A pass is a function from program
// to program: it reads the plan, applies its edits and decides nothing.
#pragma once

#include <string_view>

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/op/op_registry.h"
#include "transpiler/passes/spell/shares.h"
#include "transpiler/plan/analyse.h"
#include "transpiler/plan/plan.h"

namespace penstock::passes {

// The role that will run the result.
struct Self {
  enum class Role { kTrainer, kPserver };
  Role role = Role::kTrainer;
  int index = 0;
};

struct PassContext {
  const OpRegistry& ops;
  const Program& main;     // the user's, as analysed; the source of pserver programs
  const Program& startup;  // the user's
  const plan::Analysis& analysis;
  const plan::PlacementPlan& plan;
  const Shares& shares;  // each pserver's part of the plan
  Self self;
};

using PassFunction = Result<Program> (*)(const Program& in, const PassContext& context);

// kInternal "send_gradients: no op writes ...": a plan that does not fit the program is the planner's
// mistake.
template <typename... Parts>
Status PassError(std::string_view pass, const Parts&... parts) {
  return InternalError(StrCat("E-pass-", pass), pass, ": ", parts...);
}

// The trainer_id attribute of communication ops.
inline int SenderId(const PassContext& context) {
  return context.plan.conventions().senders_have_ids ? context.self.index : 0;
}

// kInvalidArgument: a variable of the user's program has a name that the pass needs for its own variable.
inline Status NameTaken(std::string_view pass, std::string_view name) {
  return InvalidArgument("E-plan-name-clash", pass, ": needs the name ", name,
                         ", which a variable of the program has")
      .With("note: rename that variable");
}

// kInvalidArgument: an earlier transpile over the same startup program made rings with other settings.
inline Status RingsDiffer(std::string_view pass, std::string_view id) {
  return InvalidArgument("E-plan-rings-differ", pass, ": the startup program makes ", id,
                         " already, with other ranks or other settings of rings")
      .With("note: transpile all programs of one startup program with the same ranks and settings of rings");
}

}  // namespace penstock::passes
