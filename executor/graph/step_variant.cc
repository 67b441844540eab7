#include "executor/graph/step_variant.h"

#include <algorithm>
#include <utility>

namespace penstock::exec {
namespace {

// Sets the state of the slots that the instruction names.
void SetSlots(const CompiledBlock& block, const Instruction& instruction,
              const std::vector<TensorDesc>& inputs, std::vector<TensorDesc>& slots) {
  slots.resize(block.slots.size());
  for (const auto& args : instruction.outputs) {
    for (const int slot : args) {
      if (slot >= 0)
        slots[static_cast<std::size_t>(slot)] = DescOf(*block.slots[static_cast<std::size_t>(slot)].var);
    }
  }
  std::size_t i = 0;
  for (const auto& args : instruction.inputs) {
    for (const int slot : args) {
      if (slot >= 0) slots[static_cast<std::size_t>(slot)] = inputs[i];
      ++i;
    }
  }
}

void AddOutputs(const CompiledBlock& block, const Instruction& instruction, const Inferred& inferred,
                StepVariant& out) {
  for (std::size_t i = 0; i < instruction.outputs.size(); ++i) {
    for (std::size_t j = 0; j < instruction.outputs[i].size(); ++j) {
      const int slot = instruction.outputs[i][j];
      const TensorDesc& type = inferred.outputs[i][j];
      if (slot < 0 || !IsKnownTensor(type)) continue;
      const SlotInfo& written = block.slots[static_cast<std::size_t>(slot)];
      const bool in_place = Reads(instruction, slot);
      // The caller may hold the value that it fetched from the run before.
      const bool leaves = written.kept && written.home == Home::kFrame && !in_place;
      out.outputs.push_back({.slot = slot,
                             .type = static_cast<int>(out.types.size()),
                             .in_place = in_place,
                             .sent_before = leaves});
      out.types.push_back(type);
    }
  }
}

}  // namespace

Result<StepVariant> MakeVariant(const CompiledBlock& block, const Instruction& instruction,
                                std::vector<TensorDesc> inputs, const Services& services,
                                std::vector<TensorDesc>& scratch) {
  SetSlots(block, instruction, inputs, scratch);
  PENSTOCK_ASSIGN_OR_RETURN(const Inferred inferred, InferInstruction(block, instruction, scratch));
  PENSTOCK_ASSIGN_OR_RETURN(PreparedKernel prepared,
                            PrepareKernel(block, instruction, inferred, scratch, services));
  StepVariant out;
  out.inputs = std::move(inputs);
  out.kernel = std::move(prepared.kernel);
  if (!instruction.starts_blocks) AddOutputs(block, instruction, inferred, out);
  out.workspace_bytes = LayOutWorkspaces(prepared.workspaces, out.workspaces);
  out.lod_copies = LodCopiesOf(instruction, inferred.lod_shares);
  return out;
}

}  // namespace penstock::exec
