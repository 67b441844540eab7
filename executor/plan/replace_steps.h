// What passes that put one instruction in the place of several have in common.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "executor/graph/compiled_block.h"
#include "executor/plan/block_uses.h"
#include "framework/op/tensor_desc.h"

namespace penstock::exec {

// The type of each slot when it is first written, or before the run.
std::vector<TensorDesc> WrittenTypes(const CompiledBlock& block, std::span<const TensorDesc> known);

// `from` as an op of another type, with the same arguments and attributes.
Instruction RenamedAs(const OpRegistry& ops, const Instruction& from, const char* type);

// An argument of an op: its slot, and the variable as a slot of the block.
struct NewArgument {
  const char* slot;
  int variable;
};
// `from` with some arguments replaced or added.
Instruction WithArguments(const CompiledBlock& block, const Instruction& from,
                          const std::vector<NewArgument>& inputs, const std::vector<NewArgument>& outputs);

// `from` with the variable `to` in place of the input variable `of`, which no output of it names.
Instruction WithInput(const CompiledBlock& block, const Instruction& from, int of, int to);

// Writes a block anew with fewer instructions.
class BlockWithFewerSteps {
 public:
  // Refers to both.
  BlockWithFewerSteps(const CompiledBlock& block, const BlockUses& uses)
      : block_(block), uses_(uses), replaced_(block.instructions.size()), measured_(block.slots.size()) {}

  // Puts `made` at the place of the member `at`, and removes the other members. Each instruction is a member
  // once.
  void Replace(const std::vector<int>& members, int at, Instruction made);
  // Slots keep their numbers; the lives of those that replaced and new instructions name are measured anew.
  std::shared_ptr<const CompiledBlock> Write();

 private:
  struct Replacement {
    int at = -1;  // the member that is replaced; -1: the instruction stays
    std::optional<Instruction> made;
  };

  const CompiledBlock& block_;
  const BlockUses& uses_;
  std::vector<Replacement> replaced_;  // by instruction
  std::vector<bool> measured_;         // by slot
};

}  // namespace penstock::exec
