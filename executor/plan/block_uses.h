// Who reads and writes the slots of a block, and which instructions may stand elsewhere: for passes that
// match chains of ops.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "executor/graph/compiled_block.h"

namespace penstock::exec {

class BlockUses {
 public:
  // Refers to `block`.
  explicit BlockUses(const CompiledBlock& block);

  int size() const { return static_cast<int>(block_.instructions.size()); }
  const Instruction& At(int instruction) const {
    return block_.instructions[static_cast<std::size_t>(instruction)];
  }
  const Op& OpOf(int instruction) const { return *At(instruction).op; }
  const std::string& TypeOf(int instruction) const { return OpOf(instruction).type(); }

  // The variable, as a slot of the block, that is the only argument of a slot of an instruction's op; -1:
  // there is none, or several.
  int Input(int instruction, std::string_view slot) const;
  int Output(int instruction, std::string_view slot) const;
  // Calls visit(slot) for each input and output that is present.
  template <typename Visit>
  void EachArgument(int instruction, const Visit& visit) const {
    EachOf(At(instruction), visit);
  }
  template <typename Visit>
  static void EachOf(const Instruction& instruction, const Visit& visit) {
    EachIn(instruction.inputs, visit);
    EachIn(instruction.outputs, visit);
  }

  // The instructions that read or write a slot, in their order, each once.
  const std::vector<int>& Readers(int slot) const { return readers_[static_cast<std::size_t>(slot)]; }
  const std::vector<int>& Writers(int slot) const { return writers_[static_cast<std::size_t>(slot)]; }

  bool Reads(int instruction, int slot) const;

  // Whether the slot (-1: no) is a temporary that one instruction writes and that instructions alone read: no
  // fetch, nested block, receiver or view.
  bool IsPrivate(int slot) const;
  // Whether an instruction before this one certainly writes the temporary.
  bool IsWrittenBefore(int slot, int instruction) const;
  // Whether all members can stand at the place of `at`: no other instruction in between runs blocks, writes
  // what a member reads, or touches what it writes. Members whose arguments are views, or are used by nested
  // blocks, cannot.
  //
  //   joined   by instruction: others that will stand there instead of at their own place
  bool CanMove(const std::vector<int>& members, int at, const std::vector<std::vector<int>>& joined) const;

 private:
  template <typename Visit>
  static void EachIn(const std::vector<std::vector<int>>& rows, const Visit& visit) {
    for (const std::vector<int>& row : rows) {
      for (const int slot : row) {
        if (slot >= 0) visit(slot);
      }
    }
  }
  const SlotInfo& Info(int slot) const { return block_.slots[static_cast<std::size_t>(slot)]; }
  bool Conflict(int a, int b) const;

  const CompiledBlock& block_;
  std::vector<std::vector<int>> readers_, writers_;  // by slot
  std::vector<bool> shared_;                         // by slot: nested blocks or views use its memory
  std::vector<bool> fetched_;                        // by slot
};

}  // namespace penstock::exec
