// Several places of a process run one program, and its first place runs some ops alone: the updates of what
// all places share (roles::IsOfFirstPlace). This finds the other instructions that concern the first place
// alone, such as a copy that a pass has made for an update.
#pragma once

#include <memory>
#include <vector>

#include "executor/graph/compiled_block.h"

namespace penstock::exec {

// Marks each instruction that reads a temporary which only the first place has, or that computes temporaries
// which only marked instructions read. Ops with effects outside, or with blocks, keep their mark. Call it
// after each pass that adds instructions.
void MarkOfFirstPlace(CompiledBlock& block);
// The same for a block that others hold; `block` itself if no instruction is marked.
std::shared_ptr<const CompiledBlock> MarkedOfFirstPlace(std::shared_ptr<const CompiledBlock> block);

// The positions of the fetches that later places have too: not those that only the first place writes.
std::vector<int> FetchesOfLaterPlaces(const CompiledBlock& block);

}  // namespace penstock::exec
