#include "framework/roles/row_optimizer.h"

#include <set>

#include "framework/op/op_def.h"

namespace penstock::roles {
namespace {

// The slots of the op that have arguments.
std::set<std::string> UsedSlots(const std::vector<Slot>& slots) {
  std::set<std::string> used;
  for (const Slot& slot : slots) {
    if (!slot.args.empty()) used.insert(slot.name);
  }
  return used;
}

bool UpdatesInPlace(const Op& op, const std::string& input, const std::string& output) {
  return op.Input(input).size() == 1 && op.Input(input) == op.Output(output);
}

std::optional<RowOptimizer> Read(const OpDef& def, const OpEntry& entry, DType type) {
  const OptimizerDef& optimizer = *def.optimizer();
  const Op& op = *entry.op;
  std::set<std::string> inputs = UsedSlots(op.inputs()), outputs = UsedSlots(op.outputs());
  const auto takes = [&](const std::string& input, const std::string& output) {
    return UpdatesInPlace(op, input, output) && inputs.erase(input) == 1 && outputs.erase(output) == 1;
  };
  RowOptimizer found{.op = entry.id,
                     .rule = RowRuleOf(def, op, type),
                     .grad = op.InputName(optimizer.grad_slot),
                     .rate = op.InputName(optimizer.rate_slot),
                     .columns = {op.InputName(optimizer.param_slot)},
                     .whole = {}};
  if (found.rule == nullptr || !takes(optimizer.param_slot, optimizer.param_slot + "Out"))
    return std::nullopt;
  for (const StateDef& state : optimizer.states) {
    if (!takes(state.slot, state.output.empty() ? state.slot + "Out" : state.output)) return std::nullopt;
    (state.slicing == StateSlicing::kWhole ? found.whole : found.columns).push_back(op.InputName(state.slot));
  }
  if (op.Input(optimizer.grad_slot).size() != 1 || inputs.erase(optimizer.grad_slot) != 1)
    return std::nullopt;
  const std::size_t rates = def.FindInput(optimizer.rate_slot) == nullptr ? 0 : 1;
  if (op.Input(optimizer.rate_slot).size() != rates || inputs.erase(optimizer.rate_slot) != rates)
    return std::nullopt;
  return inputs.empty() && outputs.empty() ? std::optional(std::move(found)) : std::nullopt;
}

}  // namespace

std::optional<RowOptimizer> RowOptimizerOf(const OpRegistry& ops, const Program& program, int block,
                                           const std::string& param, DType type) {
  for (const OpEntry& entry : program.block(block).ops()) {
    const OpDef* def = ops.Find(entry.op->type());
    if (def == nullptr || !def->optimizer()) continue;
    if (entry.op->InputName(def->optimizer()->param_slot) == param) return Read(*def, entry, type);
  }
  return std::nullopt;
}

}  // namespace penstock::roles
