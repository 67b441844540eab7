// What a pass that moves instructions owes the slots of its block.
#pragma once

#include <vector>

#include "executor/graph/compiled_block.h"

namespace penstock::exec {

// Lets everything that names an instruction of the block name the place where it stands now, and measures the
// lives of some slots anew.
//
//   moved_to   by instruction before the pass: its index in block.instructions
//   measured   by slot: whether other instructions than before may use it
void MoveLives(CompiledBlock& block, const std::vector<int>& moved_to, const std::vector<bool>& measured);

}  // namespace penstock::exec
