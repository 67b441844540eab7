#include "executor/schedule/step_variants.h"

#include <algorithm>
#include <utility>

#include "executor/graph/explain.h"
#include "executor/graph/row_chain.h"

namespace penstock::exec {
namespace {

// Lengths of sequences that come again soon, and the rounds of a loop, find their kernel.
constexpr std::size_t kVariantsMax = 4;

// Whether every argument has the type that the variant was made for. Control variables have no type.
bool Suits(const StepVariant& variant, const Instruction& instruction, Variable* const* variables) {
  std::size_t i = 0;
  for (const auto& args : instruction.inputs) {
    for (const int slot : args) {
      const TensorDesc& type = variant.inputs[i++];
      if (slot < 0 || !type.has_type) continue;
      if (!Holds(*variables[slot], type)) return false;
    }
  }
  return true;
}

Result<std::vector<TensorDesc>> InputTypes(const CompiledBlock& block, const Instruction& instruction,
                                           Variable* const* variables) {
  std::vector<TensorDesc> types;
  const bool may_be_empty = instruction.starts_blocks || instruction.def->reads_only_some();
  for (std::size_t i = 0; i < instruction.inputs.size(); ++i) {
    const bool needs_type = NeedsType(instruction, i);
    for (const int slot : instruction.inputs[i]) {
      if (slot < 0) {
        types.emplace_back();
        continue;
      }
      const SlotInfo& info = block.slots[static_cast<std::size_t>(slot)];
      const Variable& variable = *variables[slot];
      if (!may_be_empty && !variable.initialized() && (info.var->type || needs_type)) {
        return ExplainOp(FailedPrecondition("E-run-uninitialized", info.name, " : ", TypeText(*info.var),
                                            " has no value: the op that should have made it did not"),
                         block.program, block.block, OpAbout(instruction, slot).position);
      }
      types.push_back(DescOf(variable, *info.var));
    }
  }
  return types;
}

}  // namespace

Result<StepVariant*> StepVariants::For(const Specialisation& plan, std::size_t step,
                                       Variable* const* variables, const Services& services) {
  const CompiledBlock& block = *plan.block;
  const Instruction& instruction = block.instructions[step];
  of_step_.resize(plan.steps.size());
  std::vector<StepVariant>& made = of_step_[step];
  const auto found = std::find_if(made.rbegin(), made.rend(), [&](const StepVariant& variant) {
    return Suits(variant, instruction, variables);
  });
  if (found != made.rend()) {
    std::rotate(std::prev(found.base()), found.base(), made.end());
    return &made.back();
  }
  PENSTOCK_ASSIGN_OR_RETURN(std::vector<TensorDesc> types, InputTypes(block, instruction, variables));
  PENSTOCK_ASSIGN_OR_RETURN(StepVariant variant,
                            MakeVariant(block, instruction, std::move(types), services, slots_));
  if (made.size() == kVariantsMax) made.erase(made.begin());
  made.push_back(std::move(variant));
  return &made.back();
}

}  // namespace penstock::exec
