// The variables that instructions give to receivers, which may still read their memory when the instruction
// has run: a send hands its tensor over without a copy.
//
//   for each instruction, in order:
//     sent.NoteWrite(slot);     for each output
//     sent.Note(instruction);
#pragma once

#include <vector>

#include "executor/graph/compiled_block.h"

namespace penstock::exec {

class SentValues {
 public:
  explicit SentValues(const CompiledBlock& block);

  void Note(const Instruction& instruction);
  // Returns whether a receiver may still read the slot's memory: it was given away, and not written since.
  // The first step that writes it uses other memory while the receiver holds this one; later steps (a
  // fetch_barrier, after the recv) keep that other memory and its value.
  bool NoteWrite(int slot);
  // Whether the slot, or rows of it, have been given away.
  bool Has(int slot) const { return sent_[static_cast<std::size_t>(slot)]; }

 private:
  const CompiledBlock& block_;
  std::vector<bool> sent_;       // by slot: it, or a view of it
  std::vector<bool> unwritten_;  // by slot: since it was sent
};

}  // namespace penstock::exec
