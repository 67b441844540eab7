#include "tests/fuzz/executor/draft.h"

#include <utility>

namespace penstock::fuzz {

Draft DraftOf(const Program& program) {
  Draft draft;
  for (int b = 0; b < program.block_count(); ++b) {
    const Block& block = program.block(b);
    DraftBlock& out = draft.blocks.emplace_back();
    out.parent = block.parent();
    out.forward = block.has_forward_block() ? block.forward_block() : -1;
    for (const VarRef& var : block.vars()) {
      out.vars.push_back(*var);
      out.vars.back().wire_bytes.clear();
    }
    for (const OpEntry& entry : block.ops()) out.ops.push_back(*entry.op);
  }
  return draft;
}

Program ProgramOf(const Draft& draft) {
  Program program;
  for (std::size_t b = 0; b < draft.blocks.size(); ++b) {
    const DraftBlock& from = draft.blocks[b];
    Block& block = b == 0 ? program.MutableBlock(0) : program.AddBlock(from.parent);
    if (from.forward >= 0) block.set_forward_block(from.forward);
    for (const Var& var : from.vars) block.SetVar(var);
    for (const Op& op : from.ops) block.Append(op);
  }
  return program;
}

}  // namespace penstock::fuzz
