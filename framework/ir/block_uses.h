// Which outer variables a block uses, for code that runs a block for an op or keeps values for the block's
// gradient.
//
//   OuterNames(program, 1)        {"i", "x", "w"}: used by block 1 or the blocks it starts, declared outside
//   NamesForGradient(program, 1)  {"h"}: declared in block 1, used by its gradient block
#pragma once

#include <set>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/program.h"

namespace penstock {

// The blocks that an op's attributes name, in their order.
std::vector<int> StartedBlocks(const Op& op);

// Block 0 and all blocks that its ops run, directly or through others. Fluid leaves unreachable blocks in
// programs.
std::set<int> ReachedBlocks(const Program& program);

// Names used by ops of the block, or of the blocks they run, and declared in an enclosing block. Each once,
// in order of first use.
//
// kInvalidArgument E-block-index: an op names a block that the program does not have. E-block-cycle: a block
// runs itself, perhaps through others.
Result<std::vector<std::string>> OuterNames(const Program& program, int block);

// Variables of the block that its gradient blocks (their forward_block is this block) use. Errors as above.
Result<std::vector<std::string>> NamesForGradient(const Program& program, int block);

// The names of OuterNames that the block writes.
Result<std::vector<std::string>> OuterNamesWritten(const Program& program, int block);

// Returns the variables of the block that are named in string-list attributes of `runner`, the op that runs
// the block. That op itself passes their values in and out.
std::vector<std::string> HandedNames(const Op& runner, const Block& block);

// Whether the program has a gradient block of this block.
bool HasGradient(const Program& program, int block);

}  // namespace penstock
