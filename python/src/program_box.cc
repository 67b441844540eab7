#include "python/src/program_box.h"

#include "python/src/errors.h"

namespace penstock::python {

const Block& ProgramBox::ReadBlock(int block) const {
  if (block < 0 || block >= program.block_count()) {
    throw StatusError(InvalidArgument("E-block-index", "block ", block, " does not exist; the program has ",
                                      program.block_count()));
  }
  return program.block(block);
}

Block& ProgramBox::WriteBlock(int block) {
  ReadBlock(block);
  return program.MutableBlock(block);
}

const Op& ProgramBox::ReadOp(int block, OpId id) const {
  const Op* op = ReadBlock(block).FindOp(id);
  if (op == nullptr) {
    throw StatusError(FailedPrecondition("E-op-gone", "this op is no longer in block ", block,
                                         " of its program; take it from block.ops again"));
  }
  return *op;
}

const Var& ProgramBox::ReadVar(int block, const std::string& name) const {
  const Var* var = ReadBlock(block).FindVar(name);
  if (var == nullptr) {
    throw StatusError(FailedPrecondition("E-var-gone", "variable ", name, " is no longer in block ", block,
                                         " of its program"));
  }
  return *var;
}

}  // namespace penstock::python
