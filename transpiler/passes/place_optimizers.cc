// Gives each slice that a pserver holds a block with the ops that update it: regularizers, then the
// optimizer, on the slice's variables. All these blocks have the same parent, so that they may run side by
// side.
//
//   before  (main)    (ParamOut=w) = momentum(Param=w, Grad=w@GRAD, Velocity=w_velocity, LearningRate=lr)
//   after   (pserver) block 1 in 0 { (ParamOut=w.block1) = momentum(Param=w.block1, Grad=w@GRAD.block1, ...)
//   }
//
// State keeps its name; state shaped like the parameter takes the slice's shape. Requires: DeclareSlices,
// PlaceLrSchedule.
#include "transpiler/passes/passes.h"
#include "transpiler/passes/server_copy.h"
#include "transpiler/passes/slice_facts.h"

namespace penstock {
namespace {

constexpr char kPass[] = "place_optimizers";

class Placer {
 public:
  Placer(Program& out, const PassContext& context)
      : out_(out),
        globals_(out.MutableBlock(0)),
        context_(context),
        names_(context.plan, context.self.index) {}

  Status Place(const ServerUpdate& update, int parent) {
    Block& block = out_.AddBlock(parent);
    for (const OpId id : update.trained->server_ops) {
      const Op* op = context_.main.main().FindOp(id);
      if (op == nullptr) return PassError(kPass, "an op of the analysis is gone");
      Op copy = id == update.trained->optimizer ? Optimizer(*op, update) : Regularizer(*op, update);
      block.Append(std::move(WithRolePair(copy).SetMadeBy(kPass)));
    }
    return OkStatus();
  }

 private:
  template <typename Map>
  Op Mapped(const Op& op, Map map) {
    Op copy = ServerCopy(op, context_.ops);
    for (const Slot& slot : op.inputs()) copy.AddInput(slot.name, map(slot.args, /*written=*/false));
    for (const Slot& slot : op.outputs()) copy.AddOutput(slot.name, map(slot.args, /*written=*/true));
    return copy;
  }

  Op Regularizer(const Op& op, const ServerUpdate& update) {
    return Mapped(op, [&](std::vector<std::string> args, bool written) {
      for (std::string& name : args) {
        if (const std::string* held = names_.Held(name)) {
          name = *held;
        } else {
          DeclareTemporary(name, update, written);
          name = names_.OnTrainer(name);
        }
      }
      return args;
    });
  }

  Op Optimizer(const Op& op, const ServerUpdate& update) {
    return Mapped(op, [&](std::vector<std::string> args, bool) {
      for (std::string& name : args) {
        const std::string* held = names_.Held(name);
        if (held != nullptr) {
          name = *held;
        } else if (globals_.FindVar(name) == nullptr) {
          DeclareState(name, update);
        }
      }
      return args;
    });
  }

  // A temporary that is made from the slice and was shaped like the whole is shaped like the slice.
  void DeclareTemporary(const std::string& name, const ServerUpdate& update, bool written) {
    const Var* var = context_.main.main().FindVar(name);
    const std::string& declared = names_.OnTrainer(name);
    if (var == nullptr || globals_.FindVar(declared) != nullptr) return;
    Var copy = ServerCopy(*var);
    copy.name = declared;
    if (written && copy.type && copy.type->shape == update.placement->shape) {
      copy.type->shape = update.placement->ShapeOf(context_.plan.slice(update.at));
    }
    globals_.SetVar(std::move(copy));
  }

  void DeclareState(const std::string& name, const ServerUpdate& update) {
    const Var* var = context_.main.main().FindVar(name);
    if (var == nullptr || !var->type) return;
    const bool rows = update.trained->row_state.contains(name);
    Var state =
        TensorVar(name, var->type->dtype,
                  rows ? update.placement->ShapeOf(context_.plan.slice(update.at)) : var->type->shape);
    state.persistable = var->persistable;
    if (rows) RecordSlice(context_.plan, update.at, name, state);
    globals_.SetVar(std::move(state));
  }

  Op& WithRolePair(Op& op) {
    std::vector<std::string> pair = op.GetOr(kRoleVarAttr, std::vector<std::string>());
    for (std::string& name : pair) name = names_.OnTrainer(name);
    return op.Set(kRoleVarAttr, std::move(pair));
  }

  Program& out_;
  Block& globals_;
  const PassContext& context_;
  ServerNames names_;
};

}  // namespace

Result<Program> PlaceOptimizers(const Program& in, const PassContext& context) {
  Program out = in;
  const int parent = out.block_count() - 1;
  const std::vector<ServerUpdate> updates = UpdatesOn(context, context.self.index);
  Placer placer(out, context);
  for (const ServerUpdate& update : updates) PENSTOCK_RETURN_IF_ERROR(placer.Place(update, parent));
  if (updates.empty()) out.AddBlock(parent);  // a server without work still has a block to run
  return out;
}

}  // namespace penstock
