// A pserver's start-up program: all variables of its main program, and the initial values of those the user's
// start-up program has some for.
//
//   before  (startup) (Out=w) = uniform_random() {shape=[13l, 2048l]}
//   after   (pserver) (Out=w.block1) = uniform_random() {shape=[6l, 2048l]}
//
// A slice starts from the rows of the whole: they are recorded with the variable (slice_facts.h), by which
// random numbers are drawn, and lists of values are cut (initial_values.h). Requires: the rest of the pserver
// pipeline ran; begins with its result.
#include "transpiler/passes/initial_values.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/server_copy.h"

namespace penstock {

Result<Program> InitPserverSlices(const Program& in, const PassContext& context) {
  Program out;
  out.mutable_meta() = in.meta();
  out.mutable_meta().random_seed = context.startup.meta().random_seed;
  Block& block = out.MutableBlock(0);
  for (const VarRef& var : in.main().vars()) {
    Var copy = ServerCopy(*var);
    copy.facts = var->facts;
    block.SetVar(std::move(copy));
  }
  const ServerNames names(context.plan, context.self.index);
  for (const OpEntry& entry : context.startup.main().ops()) {
    Op copy = ServerCopy(*entry.op, context.ops);
    bool here = false;
    for (const Slot& slot : entry.op->outputs()) {
      if (slot.args.empty()) continue;
      const std::string* held = names.Held(slot.args.front());
      const std::string& name = held != nullptr ? *held : slot.args.front();
      if (block.FindVar(name) == nullptr) continue;
      here = true;
      copy.AddOutput(slot.name, {name});
    }
    if (!here) continue;
    const Var* made = block.FindVar(copy.OutputName("Out"));
    if (made != nullptr && context.plan.dialect == Dialect::kFluid18) {
      Var grown = *made;
      FitInitializerAsFluid(copy, grown);
      if (!grown.SameAs(*made)) block.SetVar(std::move(grown));
    } else if (made != nullptr) {
      PENSTOCK_RETURN_IF_ERROR(FitInitializer(copy, *made, context.ops));
    }
    block.Append(std::move(copy.SetMadeBy("init_pserver_slices")));
  }
  return out;
}

}  // namespace penstock
