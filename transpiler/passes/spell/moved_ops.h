// Ops that a pass moves from the first block to another, which a conditional_block runs, and what these name.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "framework/ir/edit.h"
#include "framework/ir/program.h"

namespace penstock::passes {

using ChooseOp = std::function<bool(const Op& op)>;

// Variables that ops which move name: declared outside the block, ascending, or nobody else's and not kept
// between steps, so that they move too.
struct MovedVars {
  std::vector<std::string> outside, own;
};
MovedVars VarsOfMoved(const Program& in, const ChooseOp& moves);

// Moves these ops, in their order, and their own variables. An op with a block of its own stays where its
// block's parent is: it is returned, and the move is not to be applied.
const Op* MoveOps(const Program& in, const ChooseOp& moves, const MovedVars& vars, BlockEdit& from,
                  BlockEdit& to);

// The last op that moves; kNone: none does.
OpId LastMoved(const Program& in, const ChooseOp& moves);

}  // namespace penstock::passes
