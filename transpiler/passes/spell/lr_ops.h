// Selects the learning-rate ops that a pserver runs.
#pragma once

#include <vector>

#include "framework/ir/op.h"
#include "transpiler/passes/context.h"

namespace penstock::passes {

// The attribute of ops that run a block: conditional_block, while.
inline constexpr char kSubBlockAttr[] = "sub_block";

// In program order, exactly the ops on which an update of the pserver depends: a server without a parameter
// has none, and a rate scaled for one parameter is computed only where that parameter is. In compat every
// pserver gets all of them, as in Fluid.
std::vector<OpId> LrOpsOn(const PassContext& context, int pserver);

}  // namespace penstock::passes
