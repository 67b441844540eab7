#include "transpiler/plan/optimizers.h"

#include <algorithm>
#include <map>
#include <span>

namespace penstock::plan {
namespace {

bool Contains(std::span<const std::string> names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Status NotAnOptimizer(const Op& op, const std::string& param) {
  return InvalidArgument("E-plan-optimizer", "plan: ", op.type(), " updates parameter ", param,
                         " and is not declared as an optimizer");
}

Result<std::optional<OptimizerUse>> ByDeclaration(const OpRegistry& ops, const Block& main, const Op& op) {
  const OpDef* def = ops.Find(op.type());
  if (def == nullptr || !def->optimizer()) {
    const std::vector<std::string> written = op.OutputNames();
    for (const auto& [param, grad] : op.RolePairs()) {
      if (def == nullptr && Contains(written, param)) return NotAnOptimizer(op, param);
    }
    return std::optional<OptimizerUse>();
  }
  const OptimizerDef& optimizer = *def->optimizer();
  OptimizerUse use{
      .param = op.InputName(optimizer.param_slot), .elementwise = optimizer.elementwise, .row_state = {}};
  const Var* param = main.FindVar(use.param);
  for (const StateDef& state : optimizer.states) {
    if (state.slicing != StateSlicing::kWithParam) continue;
    for (const std::string& name : op.Input(state.slot)) {
      const Var* var = main.FindVar(name);
      if (var == nullptr || param == nullptr || var->shape() != param->shape()) {
        return InvalidArgument("E-plan-optimizer-shape", "plan: state ", name, " of ", op.type(),
                               " must have the shape of ", use.param);
      }
      use.row_state.insert(name);
    }
  }
  return std::optional(std::move(use));
}

// Fluid's list of the slots whose variable gets the slice's shape. Fluid rejects any other optimizer with
// state.
const std::map<std::string, std::set<std::string>, std::less<>>& FluidRowSlots() {
  static const std::map<std::string, std::set<std::string>, std::less<>> kSlots = {
      {"adam", {"Moment1", "Moment2"}},
      {"adagrad", {"Moment"}},
      {"decayed_adagrad", {"Moment"}},
      {"adamax", {"Moment", "InfNorm"}},
      {"momentum", {"Velocity"}},
      {"lars_momentum", {"Velocity"}},
      {"rmsprop", {"Moment", "MeanSquare"}},
      {"ftrl", {"SquaredAccumulator", "LinearAccumulator"}},
      {"sgd", {}},
  };
  return kSlots;
}

bool HasState(const Op& op) {
  static const std::set<std::string> kNotState = {"Param", "Grad", "LearningRate", "Beta1Tensor",
                                                  "Beta2Tensor"};
  return std::any_of(op.inputs().begin(), op.inputs().end(),
                     [](const Slot& slot) { return !kNotState.contains(slot.name) && !slot.args.empty(); });
}

Result<std::optional<OptimizerUse>> ByFluidsRule(const Op& op) {
  if (!op.HasInputSlot("Param") || !op.HasInputSlot("LearningRate")) return std::optional<OptimizerUse>();
  OptimizerUse use{.param = op.InputName("Param"), .elementwise = true, .row_state = {}};
  const auto known = FluidRowSlots().find(op.type());
  if (known == FluidRowSlots().end()) {
    if (!HasState(op)) return std::optional(std::move(use));
    return InvalidArgument("E-plan-optimizer", "plan: ", op.type(),
                           " has state that Fluid 1.8 does not know how to distribute");
  }
  std::set<std::string> slots = known->second;
  if (op.GetOr<bool>("centered", false)) slots.insert("MeanGrad");  // Fluid infers its shape from the output
  for (const std::string& slot : slots) {
    for (const std::string& name : op.Input(slot)) use.row_state.insert(name);
  }
  return std::optional(std::move(use));
}

}  // namespace

Op FluidTableUpdate(const Op& users, const std::string& table, const std::string& grad) {
  Op op("sgd");
  op.AddInput("Param", {table})
      .AddInput("LearningRate", users.Input("LearningRate"))
      .AddInput("Grad", {grad});
  op.AddOutput("ParamOut", {table});
  op.SetRole(OpRole::kForward).Set(kRoleVarAttr, std::vector<std::string>());
  return op.Set(kNameScopeAttr, "/").Set(kDeviceAttr, "");
}

Result<std::optional<OptimizerUse>> RecogniseOptimizer(const OpRegistry& ops, const Block& main, const Op& op,
                                                       Dialect dialect) {
  return dialect == Dialect::kFluid18 ? ByFluidsRule(op) : ByDeclaration(ops, main, op);
}

}  // namespace penstock::plan
