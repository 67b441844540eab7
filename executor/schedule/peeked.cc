#include "executor/schedule/peeked.h"

#include <cstddef>
#include <string>
#include <utility>

#include "executor/graph/explain.h"
#include "framework/op/tensor_desc.h"

namespace penstock::exec {
namespace {

// Calls call(slot) for each output of an op that was asked.
template <typename Call>
void ForEachOutput(const CompiledBlock& block, const Peek& peek, const Call& call) {
  for (const auto& args : block.instructions[static_cast<std::size_t>(peek.instruction)].outputs) {
    for (const int slot : args) call(slot);
  }
}

// The declared type, of unknown extents.
TensorDesc Untold(const CompiledBlock& block, int slot) {
  if (slot < 0) return {};
  TensorDesc type = DescOf(*block.slots[static_cast<std::size_t>(slot)].var);
  type.shape = Shape(std::vector<Dim>(static_cast<std::size_t>(type.shape.rank()), kUnknownDim));
  return type;
}

}  // namespace

Status PeekBatches(const CompiledBlock& block, const Scope& scope, OpTimer* timer,
                   std::vector<TensorDesc>& types) {
  static const std::string kWait = "wait_for_batch";
  for (const Peek& peek : block.peeks) {
    const Instruction& instruction = block.instructions[static_cast<std::size_t>(peek.instruction)];
    const Variable* source = scope.Find(block.slots[static_cast<std::size_t>(peek.source)].name);
    std::vector<TensorDesc> told;
    const Nanoseconds begin = timer == nullptr ? Nanoseconds{0} : timer->Now();
    if (source != nullptr) {
      auto answer = instruction.def->output_peek()(*source);
      if (!answer.ok()) {
        return ExplainOp(std::move(answer).status(), block.program, block.block, instruction.position);
      }
      told = *std::move(answer);
    }
    if (timer != nullptr) timer->Add(kWait, begin, block.block, instruction.position);
    std::size_t outputs = 0;
    ForEachOutput(block, peek, [&](int) { ++outputs; });
    if (told.size() != outputs) {
      told.clear();
      ForEachOutput(block, peek, [&](int slot) { told.push_back(Untold(block, slot)); });
    }
    types.insert(types.end(), told.begin(), told.end());
  }
  return OkStatus();
}

void SetPeeked(const CompiledBlock& block, std::span<const TensorDesc> types,
               std::vector<TensorDesc>& known) {
  std::size_t next = 0;
  for (const Peek& peek : block.peeks) {
    ForEachOutput(block, peek, [&](int slot) {
      if (slot >= 0) known[static_cast<std::size_t>(slot)] = types[next];
      ++next;
    });
  }
}

}  // namespace penstock::exec
