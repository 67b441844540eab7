#include "framework/autodiff/in_block.h"

#include <utility>
#include <vector>

namespace penstock {

SeenFromBlock::SeenFromBlock(Program& program, int block) : target_(program), block_(block) {
  if (block == 0) return;
  seen_ = program;
  std::vector<int> inner;  // the enclosing blocks, without block 0, and the block itself
  for (int at = block; at > 0; at = program.block(at).parent()) inner.insert(inner.begin(), at);
  Block& main = seen_.MutableBlock(0);
  for (const int at : inner) {
    for (const VarRef& var : program.block(at).vars()) main.AddVarRef(var);
    for (const OpEntry& entry : program.block(at).ops()) main.Append(*entry.op);
  }
  ops_before_ = main.ops().size();
  blocks_before_ = program.block_count();
}

void SeenFromBlock::PutBack() {
  if (block_ == 0) return;
  for (const VarRef& var : seen_.main().vars()) {
    if (target_.FindVar(block_, var->name) == nullptr)
      target_.MutableBlock(var->persistable ? 0 : block_).AddVarRef(var);
  }
  const std::vector<OpEntry>& ops = seen_.main().ops();
  for (std::size_t i = ops_before_; i < ops.size(); ++i)
    moved_[ops[i].id] = target_.MutableBlock(block_).Append(*ops[i].op);
  for (int at = blocks_before_; at < seen_.block_count(); ++at) {
    const Block& from = seen_.block(at);
    Block& to = target_.AddBlock(from.parent() == 0 ? block_ : from.parent());
    if (from.has_forward_block()) to.set_forward_block(from.forward_block());
    for (const VarRef& var : from.vars()) to.AddVarRef(var);
    for (const OpEntry& entry : from.ops()) to.Append(*entry.op);
  }
}

OpId SeenFromBlock::Moved(OpId op) const {
  const auto found = moved_.find(op);
  return found == moved_.end() ? op : found->second;
}

}  // namespace penstock
