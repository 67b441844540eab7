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

// The op after the optimizer that multiplies a whole state by the attribute, as StateDef::advance_attr says.
std::optional<OpId> FindAdvance(const OpDef& def, const Block& block, const OpEntry& entry,
                                const StateDef& state) {
  const std::string& name = entry.op->InputName(state.slot);
  const float factor =
      entry.op->GetOr(state.advance_attr, std::get<float>(*def.FindAttr(state.advance_attr)->default_value));
  std::optional<OpId> found;
  bool after = false;
  for (const OpEntry& other : block.ops()) {
    const Op& op = *other.op;
    if (other.id == entry.id) {
      after = true;
    } else if (op.InputName("X") == name) {
      const bool advances = op.type() == "scale" && UpdatesInPlace(op, "X", "Out") &&
                            UsedSlots(op.inputs()).size() == 1 && op.GetOr("scale", 1.0f) == factor &&
                            op.GetOr("bias", 0.0f) == 0;
      if (!after || !advances || found) return std::nullopt;
      found = other.id;
    }
  }
  return found;
}

std::optional<RowOptimizer> Read(const OpDef& def, const Block& block, const OpEntry& entry, DType type) {
  const OptimizerDef& optimizer = *def.optimizer();
  const Op& op = *entry.op;
  std::set<std::string> inputs = UsedSlots(op.inputs()), outputs = UsedSlots(op.outputs());
  const auto takes = [&](const std::string& input, const std::string& output) {
    return UpdatesInPlace(op, input, output) && inputs.erase(input) == 1 && outputs.erase(output) == 1;
  };
  RowOptimizer found{.replaces = {entry.id},
                     .rule = RowRuleOf(def, op, type),
                     .grad = op.InputName(optimizer.grad_slot),
                     .rate = op.InputName(optimizer.rate_slot),
                     .columns = {op.InputName(optimizer.param_slot)},
                     .whole = {}};
  if (found.rule == nullptr || !takes(optimizer.param_slot, optimizer.param_slot + "Out"))
    return std::nullopt;
  for (const StateDef& state : optimizer.states) {
    if (state.output == "-") {
      const std::optional<OpId> advance = FindAdvance(def, block, entry, state);
      if (!advance || op.Input(state.slot).size() != 1 || inputs.erase(state.slot) != 1) return std::nullopt;
      found.replaces.push_back(*advance);
    } else if (!takes(state.slot, state.output.empty() ? state.slot + "Out" : state.output)) {
      return std::nullopt;
    }
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
    if (entry.op->InputName(def->optimizer()->param_slot) == param)
      return Read(*def, program.block(block), entry, type);
  }
  return std::nullopt;
}

}  // namespace penstock::roles
