// A program of ranks with unequal batches, as it is while a rank's examples count.
#pragma once

#include <optional>

#include "framework/ir/program.h"

namespace penstock::check {

// The program with the blocks that run only while something lasting says so among the ops of the first block,
// or nothing if it has none or would be no valid program. Such a block is a conditional_block of the first
// block whose condition is a cast of a persistable variable that no op of the program writes. It is 1 from
// the startup program on, and its owner, the user's loop, clears it where a batch does not count.
std::optional<Program> WhileLive(const Program& program);

}  // namespace penstock::check
