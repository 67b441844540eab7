// Lets backward passes and optimizers add to a block that is under construction, such as a branch of a
// conditional.
//
//   SeenFromBlock seen(program, block);
//   PENSTOCK_ASSIGN_OR_RETURN(BackwardResult result, AppendBackward(ops, seen.program(), names, options));
//   seen.PutBack();
//
// Backward passes and optimizers work on block 0. SeenFromBlock gives them a program whose block 0 has the
// ops of the enclosing blocks, then those of `block`. PutBack moves the ops that they append to the end of
// `block`.
#pragma once

#include <map>

#include "framework/ir/program.h"

namespace penstock {

class SeenFromBlock {
 public:
  // For block 0, program() is `program` itself. `program` must outlive this object.
  SeenFromBlock(Program& program, int block);

  Program& program() { return block_ == 0 ? target_ : seen_; }
  // Appends the new ops to the block, adds the new blocks, and declares new variables: persistable ones in
  // block 0, others in the block.
  void PutBack();
  // After PutBack: the op of the block that corresponds to an op of program().
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
