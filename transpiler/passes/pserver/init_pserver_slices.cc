// Makes a pserver's startup program: declares all variables of its main program, and initializes those that
// the user's startup program initializes.
//
//   before  (startup) (Out=w) = uniform_random() {shape=[13l, 2048l]}
//   after   (pserver) (Out=w.block1) = uniform_random() {shape=[6l, 2048l]}
//
// A slice starts as its rows of the whole: the variable records these rows (slice_facts.h), random
// initializers draw the numbers of these rows, and lists of values are cut (initial_values.h). An initial
// value that the user's startup program computes from others is computed here from the same ones
// (computed_starts.h). Requires: the input is the result of the whole pserver pipeline.
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/computed_starts.h"
#include "transpiler/passes/spell/initial_values.h"
#include "transpiler/passes/spell/server_copy.h"

namespace penstock::passes {
namespace {

// An op that initializes variables of this pserver, and these variables.
struct Starter {
  struct Made {
    Word slot;
    VarRef var;
  };
  Op op;
  std::vector<Made> made;
};

// The copy of `op` for the `which`-th variable that replaces each output here; nullopt if there is none.
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

// The positions of the user's ops that initialize any variable of this pserver, ascending.
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

// Gives each variable the element type of the user's startup program, if the main program changes it later.
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

Status Fit(Starter& starter, const PassContext& context, Block& block) {
  for (auto& [slot, made] : starter.made) {
    if (slot != "Out") continue;
    if (context.plan.conventions().slices_start_as_rows)
      return FitInitializer(starter.op, *made, context.ops);
    Var grown = *made;
    FitInitializerAsFluid(starter.op, grown);
    if (!grown.SameAs(*made)) made = Declare(std::move(grown), block);
  }
  return OkStatus();
}

// Appends the user's initializers of the variables that the block declares.
Status Initialize(const PassContext& context, const Block& held, Block& block) {
  const ServerNames names(context, context.self.index);
  ComputedStarts computed(context, names, held, block);
  const std::vector<OpEntry>& ops = context.startup.main().ops();
  const std::set<int> starters = StartersOf(block, names, context);
  for (const int position : starters) {
    const Op& op = *ops[static_cast<std::size_t>(position)].op;
    if (op.InputNames().empty()) continue;
    for (std::size_t which = 0;; ++which) {
      const std::optional<Starter> starter = StarterFor(op, which, names, context, block);
      if (!starter) break;
      for (const Starter::Made& one : starter->made)
        PENSTOCK_RETURN_IF_ERROR(computed.Need(position, *one.var));
    }
  }
  std::set<int> positions = computed.Positions();
  positions.insert(starters.begin(), starters.end());
  for (const int position : positions) {
    const Op& op = *ops[static_cast<std::size_t>(position)].op;
    computed.AppendNoted(position);
    // Once for each variable that replaces its output here.
    for (std::size_t which = 0; starters.contains(position); ++which) {
      std::optional<Starter> starter = StarterFor(op, which, names, context, block);
      if (!starter) break;
      TypeAsStarted(op, *starter, context, block);
      if (op.InputNames().empty()) {
        PENSTOCK_RETURN_IF_ERROR(Fit(*starter, context, block));
        block.Append(std::move(starter->op.SetMadeBy("init_pserver_slices")));
      } else {
        const Starter::Made made = starter->made.front();
        computed.AppendStarter(position, std::move(starter->op), made.slot, *made.var);
      }
    }
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
  // Variables that trainer 0 sends at the start are declared after the ops, so that no initializer is made
  // for them.
  std::set<std::string> awaited;
  for (const plan::StartValue& value : context.plan.start_values) awaited.insert(value.name);
  for (const VarRef& var : in.main().vars()) {
    if (!awaited.contains(var->name)) declare(*var);
  }
  PENSTOCK_RETURN_IF_ERROR(Initialize(context, in.main(), block));
  for (const VarRef& var : in.main().vars()) {
    if (awaited.contains(var->name)) declare(*var);
  }
  return out;
}

}  // namespace penstock::passes
