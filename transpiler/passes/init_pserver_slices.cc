// A pserver's start-up program: all variables of its main program, and the initial values of those the user's
// start-up program has some for.
//
//   before  (startup) (Out=w) = uniform_random() {shape=[13l, 2048l]}
//   after   (pserver) (Out=w.block1) = uniform_random() {shape=[6l, 2048l]}
//
// Which rows of the whole a slice starts from is recorded with the variable (slice_facts.h). Requires: the
// rest of the pserver pipeline ran; begins with its result.
#include <set>
#include <string_view>

#include "transpiler/passes/passes.h"
#include "transpiler/passes/server_copy.h"

namespace penstock {
namespace {

// Initializers that make what their `shape` says. Others (assign_value) carry their values.
bool ShapeDecides(const Op& op) {
  static const std::set<std::string, std::less<>> kTypes = {"fill_constant", "gaussian_random",
                                                            "truncated_gaussian_random", "uniform_random"};
  return kTypes.contains(op.type());
}

void SetShape(Op& op, const Shape& shape) {
  if (op.Get<std::vector<std::int32_t>>("shape") != nullptr) {
    op.Set("shape", std::vector<std::int32_t>(shape.dims().begin(), shape.dims().end()));
  } else {
    op.Set("shape", shape.dims());
  }
}

// Fluid lets a slice that starts from a list of values have all of them, and the whole's shape.
void GrowAsFluid(const Op& op, const std::string& name, Block& block) {
  const auto* dims = op.Get<std::vector<std::int32_t>>("shape");
  const Var* var = block.FindVar(name);
  if (op.type() != "assign_value" || dims == nullptr || var == nullptr || !var->type) return;
  Var grown = *var;
  grown.type->shape = Shape(std::vector<Dim>(dims->begin(), dims->end()));
  block.SetVar(std::move(grown));
}

}  // namespace

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
    const std::string& made = copy.OutputName("Out");
    if (ShapeDecides(copy) && block.FindVar(made) != nullptr) {
      SetShape(copy, block.FindVar(made)->shape());
    } else if (context.plan.dialect == Dialect::kFluid18) {
      GrowAsFluid(copy, made, block);
    }
    block.Append(std::move(copy.SetMadeBy("init_pserver_slices")));
  }
  return out;
}

}  // namespace penstock
