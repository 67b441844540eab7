#include "executor/graph/sent_values.h"

namespace penstock::exec {

SentValues::SentValues(const CompiledBlock& block)
    : block_(block), sent_(block.slots.size(), false), unwritten_(block.slots.size(), false) {}

void SentValues::Note(const Instruction& instruction) {
  if (!instruction.def->effects().MayHoldArguments()) return;
  for (const std::vector<int>& row : instruction.inputs) {
    for (const int slot : row) {
      if (slot < 0) continue;
      sent_[static_cast<std::size_t>(slot)] = true;
      unwritten_[static_cast<std::size_t>(slot)] = true;
      const int whole = block_.slots[static_cast<std::size_t>(slot)].view_of;
      if (whole >= 0) sent_[static_cast<std::size_t>(whole)] = true;
    }
  }
}

bool SentValues::NoteWrite(int slot) {
  const bool unwritten = unwritten_[static_cast<std::size_t>(slot)];
  unwritten_[static_cast<std::size_t>(slot)] = false;
  return unwritten;
}

}  // namespace penstock::exec
