#include "executor/plan/lives.h"

#include <cstddef>

namespace penstock::exec {
namespace {

void Measure(CompiledBlock& block, const std::vector<bool>& measured, int at, bool write) {
  const Instruction& instruction = block.instructions[static_cast<std::size_t>(at)];
  const std::vector<std::vector<int>>& arguments = write ? instruction.outputs : instruction.inputs;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!write && !ReadsElements(instruction, i)) continue;
    for (const int named : arguments[i]) {
      if (named < 0 || !measured[static_cast<std::size_t>(named)]) continue;
      SlotInfo& slot = block.slots[static_cast<std::size_t>(named)];
      slot.last_use = at;
      if (!write) continue;
      slot.written = true;
      if (slot.first_write < 0) slot.first_write = at;
    }
  }
}

}  // namespace

void MoveLives(CompiledBlock& block, const std::vector<int>& moved_to, const std::vector<bool>& measured) {
  const auto move = [&](int& instruction) {
    if (instruction >= 0) instruction = moved_to[static_cast<std::size_t>(instruction)];
  };
  for (RowGroup& group : block.row_groups) move(group.instruction);
  for (Peek& peek : block.peeks) move(peek.instruction);
  for (std::size_t s = 0; s < block.slots.size(); ++s) {
    SlotInfo& slot = block.slots[s];
    move(slot.required_by);
    if (!measured[s]) {
      move(slot.first_write);
      move(slot.last_use);
    } else if (slot.home == Home::kFrame) {
      slot.first_write = slot.last_use = -1;
      slot.written = false;
    }
  }
  for (std::size_t i = 0; i < block.instructions.size(); ++i) {
    const int at = static_cast<int>(i);
    Measure(block, measured, at, false);
    Measure(block, measured, at, true);
  }
}

}  // namespace penstock::exec
