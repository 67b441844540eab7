// Moves ops, and the variables that only they use, from block 0 to a block that a conditional_block runs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "framework/ir/edit.h"
#include "framework/ir/program.h"

namespace penstock::passes {

using ChooseOp = std::function<bool(const Op& op)>;

// The variables that moved ops name, ascending: `outside` stay declared outside the block; `own` move with
// the ops, because no other op names them and they are not kept between steps.
struct MovedVars {
  std::vector<std::string> outside, own;
};
MovedVars VarsOfMoved(const Program& in, const ChooseOp& moves);

// Moves the selected ops, in their order, and their own variables. Returns null, or an op with a block of its
// own, which must stay with its block's parent: then the caller must not apply the edit.
const Op* MoveOps(const Program& in, const ChooseOp& moves, const MovedVars& vars, BlockEdit& from,
                  BlockEdit& to);

// The last op that moves; kNone if none does.
OpId LastMoved(const Program& in, const ChooseOp& moves);

}  // namespace penstock::passes
