// What is added to a block that is still under construction: gradients and updates of a loss in a branch of a
// conditional, say.
//
//   SeenFromBlock seen(program, block);
//   PENSTOCK_ASSIGN_OR_RETURN(BackwardResult result, AppendBackward(ops, seen.program(), names, options));
//   seen.PutBack();
//
// Backward passes and optimizers work on block 0. So they are shown a program whose block 0 has the ops of
// the blocks around `block`, then its own; what they append belongs at the end of `block`.
#pragma once

#include <map>

#include "framework/ir/program.h"

namespace penstock {

class SeenFromBlock {
 public:
  // Of block 0 the program itself is seen. `program` must outlive this.
  SeenFromBlock(Program& program, int block);

  Program& program() { return block_ == 0 ? target_ : seen_; }
  // Appends the new ops to the block and adds the new blocks; declares new variables that last in block 0 and
  // the others in the block.
  void PutBack();
  // The op that stands for one of program(), once it has been put back.
  OpId Moved(OpId op) const;

 private:
  Program& target_;
  int block_;
  Program seen_;
  std::size_t ops_before_ = 0;
  int blocks_before_ = 0;
  std::map<OpId, OpId> moved_;
};

}  // namespace penstock
