// What every pass gets beside the program it rewrites. A pass is a function from program to program: it reads
// the plan, makes its edits and decides nothing.
#pragma once

#include <string_view>

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/op/op_registry.h"
#include "transpiler/passes/spell/shares.h"
#include "transpiler/plan/analyse.h"
#include "transpiler/plan/plan.h"

namespace penstock::passes {

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
  const plan::Analysis& analysis;
  const plan::PlacementPlan& plan;
  const Shares& shares;  // of the plan, by pserver
  Self self;
};

using PassFunction = Result<Program> (*)(const Program& in, const PassContext& context);

// "send_gradients: no op writes ...": a plan that does not fit the program is the planner's mistake.
template <typename... Parts>
Status PassError(std::string_view pass, const Parts&... parts) {
  return InternalError(StrCat("E-pass-", pass), pass, ": ", parts...);
}

// What a `send` says of who sends: Fluid's says trainer 0, whoever it is.
inline int SenderId(const PassContext& context) {
  return context.plan.dialect == plan::Dialect::kFluid18 ? 0 : context.self.index;
}

// A variable of the user's has the name that a pass has to give to its own.
inline Status NameTaken(std::string_view pass, std::string_view name) {
  return InvalidArgument("E-plan-name-clash", pass, ": needs the name ", name,
                         ", which a variable of the program has")
      .With("note: rename that variable");
}

}  // namespace penstock::passes
