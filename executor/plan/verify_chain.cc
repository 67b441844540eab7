#include "executor/plan/verify_chain.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "executor/graph/explain.h"
#include "framework/base/strings.h"

namespace penstock::exec {
namespace {

// The slots of the instruction's arguments: inputs, then outputs, in the order of the chain's slots.
std::vector<int> ArgumentsOf(const Instruction& instruction) {
  std::vector<int> slots;
  for (const auto* arguments : {&instruction.inputs, &instruction.outputs})
    EachSlot(*arguments, [&](int slot) { slots.push_back(slot); });
  return slots;
}

std::string FaultOfArguments(const CompiledBlock& block, const Instruction& instruction) {
  const RowChain& chain = *instruction.chain;
  const std::vector<int> arguments = ArgumentsOf(instruction);
  const auto inputs = static_cast<int>(instruction.inputs.size()),
             outputs = static_cast<int>(instruction.outputs.size());
  if (inputs != chain.inputs || outputs != chain.outputs ||
      arguments.size() != instruction.inputs.size() + instruction.outputs.size()) {
    return StrCat("its chain has ", chain.inputs, " inputs and ", chain.outputs,
                  " outputs, and the instruction ", inputs, " and ", outputs);
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& named = block.slots[static_cast<std::size_t>(arguments[i])].name;
    if (named == chain.block.slots[i].name) continue;
    return StrCat(named, " is ", chain.block.slots[i].name, " in its chain");
  }
  return "";
}

std::string FaultOfOrder(const RowChain& chain) {
  const std::vector<SlotInfo>& slots = chain.block.slots;
  std::vector<bool> has_value(slots.size(), false);
  std::fill_n(has_value.begin(), chain.inputs, true);
  std::string fault;
  const auto report = [&](const auto&... parts) { fault = fault.empty() ? StrCat(parts...) : fault; };
  for (const Instruction& member : chain.block.instructions) {
    EachSlot(member.inputs, [&](int slot) {
      if (!has_value[static_cast<std::size_t>(slot)])
        report("no op before ", member.op->type(), " in its chain writes ",
               slots[static_cast<std::size_t>(slot)].name);
    });
    EachSlot(member.outputs, [&](int slot) {
      const auto s = static_cast<std::size_t>(slot);
      if (has_value[s])
        report(member.op->type(), " in its chain writes ", slots[s].name, ", which has a value");
      has_value[s] = true;
    });
  }
  for (int i = 0; i < chain.outputs; ++i) {
    const auto s = static_cast<std::size_t>(chain.inputs + i);
    if (!has_value[s]) report("no op in its chain writes ", slots[s].name);
  }
  return fault;
}

Result<ChainTypes> TypesIn(const Specialisation& plan, std::size_t step) {
  const RowChain& chain = *plan.block->instructions[step].chain;
  const std::vector<int> arguments = ArgumentsOf(plan.block->instructions[step]);
  std::vector<TensorDesc> read(static_cast<std::size_t>(chain.inputs));
  for (const InputSlot& input : plan.InputsOf(step)) {
    const auto at = std::ranges::find(arguments, input.slot) - arguments.begin();
    if (at < chain.inputs) read[static_cast<std::size_t>(at)] = plan.type(input.type);
  }
  return TypesOfChain(chain, std::move(read));
}

std::string FaultOfTypes(const Specialisation& plan, std::size_t step) {
  const RowChain& chain = *plan.block->instructions[step].chain;
  const Result<ChainTypes> types = TypesIn(plan, step);
  if (!types.ok()) return StrCat("in its chain: ", types.status().message());
  if (!types->by_rows) return "the ops of its chain do not run on the same rows";
  const std::vector<int> arguments = ArgumentsOf(plan.block->instructions[step]);
  for (const OutputSlot& output : plan.OutputsOf(step)) {
    const auto at = static_cast<std::size_t>(std::ranges::find(arguments, output.slot) - arguments.begin());
    const TensorDesc &left = types->types[at], &planned = plan.type(output.type);
    if (left.dtype == planned.dtype && left.shape == planned.shape) continue;
    return StrCat(chain.block.slots[at].name, " is written as ", TypeText(left),
                  " by its chain and planned as ", TypeText(planned));
  }
  return "";
}

}  // namespace

std::string FaultOfChain(const Specialisation& plan, std::size_t step) {
  const Instruction& instruction = plan.block->instructions[step];
  if (std::string fault = FaultOfArguments(*plan.block, instruction); !fault.empty()) return fault;
  if (std::string fault = FaultOfOrder(*instruction.chain); !fault.empty()) return fault;
  return plan.steps[step].has_kernel ? FaultOfTypes(plan, step) : "";
}

bool ChainComputesInPlace(const Specialisation& plan, std::size_t step, int output, int input) {
  const Result<ChainTypes> types = TypesIn(plan, step);
  if (!types.ok()) return false;
  const std::vector<int> arguments = ArgumentsOf(plan.block->instructions[step]);
  const auto at = [&](int slot) {
    return static_cast<int>(std::ranges::find(arguments, slot) - arguments.begin());
  };
  return MayLieIn(*plan.block->instructions[step].chain, *types, at(output), at(input));
}

}  // namespace penstock::exec
