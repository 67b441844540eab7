// A pserver's startup program: all variables of its main program, and the initial values of those the user's
// startup program has some for.
//
//   before  (startup) (Out=w) = uniform_random() {shape=[13l, 2048l]}
//   after   (pserver) (Out=w.block1) = uniform_random() {shape=[6l, 2048l]}
//
// A slice starts from the rows of the whole: they are recorded with the variable (slice_facts.h), by which
// random numbers are drawn, and lists of values are cut (initial_values.h). Requires: the rest of the pserver
// pipeline ran; begins with its result.
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/initial_values.h"
#include "transpiler/passes/spell/server_copy.h"

namespace penstock::passes {
namespace {

// An op that starts variables here, and these.
struct Starter {
  struct Made {
    Word slot;
    VarRef var;
  };
  Op op;
  std::vector<Made> made;
};

// For the `which`-th variable here of each output; none if there is no such variable.
std::optional<Starter> StarterFor(const Op& op, std::size_t which, const ServerNames& names,
                                  const PassContext& context, const Block& block) {
  std::vector<Starter::Made> made;
  for (const Slot& slot : op.outputs()) {
    if (slot.args.empty()) continue;
    const std::vector<std::string> here = names.All(slot.args.front());
    VarRef var = which < here.size() ? block.FindVarRef(here[which]) : nullptr;
    if (var != nullptr) made.push_back({slot.name, std::move(var)});
  }
  if (made.empty()) return std::nullopt;
  Starter starter{.op = ServerCopy(op, context.ops), .made = std::move(made)};
  for (const Slot& slot : op.outputs()) starter.op.AddOutput(slot.name, {});
  for (const Starter::Made& one : starter.made) starter.op.AddOutput(one.slot, {one.var->name});
  return starter;
}

// The user's ops that make anything for which something stands here: where they stand, in their order.
std::set<int> StartersOf(const Block& block, const ServerNames& names, const PassContext& context) {
  std::set<int> positions;
  const auto add = [&](std::string_view name) {
    for (const OpId id : context.shares.started().Writers(name))
      positions.insert(context.startup.main().PositionOf(id));
  };
  for (const VarRef& var : block.vars()) add(var->name);
  for (const std::string_view name : names.Replaced()) add(name);
  return positions;
}

VarRef Declare(Var var, Block& block) {
  auto declared = std::make_shared<const Var>(std::move(var));
  block.AddVarRef(declared);
  return declared;
}

// What an op of the main program makes another type of is declared there as that, and starts as what it was.
void TypeAsStarted(const Op& users, Starter& starter, const PassContext& context, Block& block) {
  for (auto& [slot, here] : starter.made) {
    const Var* started = context.startup.main().FindVar(users.OutputName(slot));
    if (started == nullptr || !started->type || !here->type || started->type->dtype == here->type->dtype)
      continue;
    Var typed = *here;
    typed.type->dtype = started->type->dtype;
    here = Declare(std::move(typed), block);
  }
}

// Other variables that an initial value is computed from are the trainers'.
Status RequireInputsHere(const Op& op, const Block& block) {
  for (const std::string& name : op.InputNames()) {
    if (block.FindVar(name) != nullptr) continue;
    return Unimplemented("E-pass-initial-value", "init_pserver_slices: ", op.type(),
                         " computes the initial values of ", Join(op.OutputNames(), ", "), " from ", name,
                         ", which is not on this pserver; give it an initializer of its own");
  }
  return OkStatus();
}

Status Fit(Starter& starter, const PassContext& context, Block& block) {
  for (auto& [slot, made] : starter.made) {
    if (slot != "Out") continue;
    if (context.plan.dialect == plan::Dialect::kDefault)
      return FitInitializer(starter.op, *made, context.ops);
    Var grown = *made;
    FitInitializerAsFluid(starter.op, grown);
    if (!grown.SameAs(*made)) made = Declare(std::move(grown), block);
  }
  return OkStatus();
}

}  // namespace

Result<Program> InitPserverSlices(const Program& in, const PassContext& context) {
  Program out;
  out.mutable_meta() = in.meta();
  out.mutable_meta().random_seed = context.startup.meta().random_seed;
  Block& block = out.MutableBlock(0);
  const auto declare = [&](const Var& var) {
    Var copy = ServerCopy(var);
    copy.facts = var.facts;
    block.SetVar(std::move(copy));
  };
  // What trainer 0 sends at the start is declared behind the ops, so that none is made for it.
  std::set<std::string> awaited;
  for (const plan::StartValue& value : context.plan.start_values) awaited.insert(value.name);
  for (const VarRef& var : in.main().vars()) {
    if (!awaited.contains(var->name)) declare(*var);
  }
  const ServerNames names(context, context.self.index);
  for (const int position : StartersOf(block, names, context)) {
    const Op& op = *context.startup.main().ops()[static_cast<std::size_t>(position)].op;
    // Once for each variable that stands here for what it makes.
    for (std::size_t which = 0;; ++which) {
      std::optional<Starter> starter = StarterFor(op, which, names, context, block);
      if (!starter) break;
      PENSTOCK_RETURN_IF_ERROR(RequireInputsHere(starter->op, block));
      TypeAsStarted(op, *starter, context, block);
      PENSTOCK_RETURN_IF_ERROR(Fit(*starter, context, block));
      block.Append(std::move(starter->op.SetMadeBy("init_pserver_slices")));
    }
  }
  for (const VarRef& var : in.main().vars()) {
    if (awaited.contains(var->name)) declare(*var);
  }
  return out;
}

}  // namespace penstock::passes
