// Ranks with unequal batches: the program as it runs while the rank's examples count.
#pragma once

#include <optional>

#include "framework/ir/program.h"

namespace penstock::check {

// Returns the program with every live-only block inlined into block 0; nullopt if it has no such block or the
// result would be invalid. A live-only block is run by a conditional_block of block 0 whose condition is a
// cast of a persistable variable that no op of the program writes. The startup program sets that variable to
// 1, and the user's loop clears it for a batch that does not count.
std::optional<Program> WhileLive(const Program& program);

}  // namespace penstock::check
