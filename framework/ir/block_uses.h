// What a block takes from outside: for whoever runs a block for an op, and whoever keeps values for its
// gradient.
//
//   OuterNames(program, 1)       {"i", "x", "w"}: block 1 and the blocks it starts mention them, block 1 does
//                                not declare them
//   NamesForGradient(program, 1) {"h"}: declared in block 1, mentioned by the block that is its gradient
#pragma once

#include <set>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/program.h"

namespace penstock {

// The blocks that an op's attributes name, in their order.
std::vector<int> StartedBlocks(const Op& op);

// Block 0, and what its ops start, those blocks' ops, and so on. Fluid leaves blocks in programs that nobody
// runs.
std::set<int> ReachedBlocks(const Program& program);

// Names that ops of the block, or of blocks that these start, mention and that are declared further out. Each
// once, in order of mention.
//
// kInvalidArgument E-block-index: an op names a block that the program has not. E-block-cycle: a block starts
// itself, perhaps through others.
Result<std::vector<std::string>> OuterNames(const Program& program, int block);

// Variables of the block that its gradients (blocks whose forward_block it is) mention. Errors as above.
Result<std::vector<std::string>> NamesForGradient(const Program& program, int block);

// Those of OuterNames that something writes.
Result<std::vector<std::string>> OuterNamesWritten(const Program& program, int block);

// Variables of a block that attributes of the op which runs it name: what the op itself hands in and out
// there.
std::vector<std::string> HandedNames(const Op& runner, const Block& block);

// Whether some block is the gradient of this one.
bool HasGradient(const Program& program, int block);

}  // namespace penstock
