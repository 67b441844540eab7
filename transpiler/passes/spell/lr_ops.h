// Which of the learning-rate ops a pserver runs.
#pragma once

#include <vector>

#include "framework/ir/op.h"
#include "transpiler/passes/context.h"

namespace penstock::passes {

// The attribute of ops that run a block: conditional_block, while.
inline constexpr char kSubBlockAttr[] = "sub_block";

// In program order, those that an update of the pserver depends on, and no other: a server without a
// parameter has none, and a rate that is scaled for one parameter is computed where that parameter is. In
// compat all of them on every pserver, as Fluid has it.
std::vector<OpId> LrOpsOn(const PassContext& context, int pserver);

}  // namespace penstock::passes
