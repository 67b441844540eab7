// Shared code of the passes that send gradients: the place and the arguments of each send.
#pragma once

#include <functional>
#include <string_view>

#include "framework/ir/edit.h"
#include "transpiler/passes/context.h"
#include "transpiler/passes/spell/comm_ops.h"

namespace penstock::passes {

// Calls `place` for each planned gradient with its last writer, because a gradient summed over several uses
// is written more than once. The order of the calls reproduces Fluid's order of sends: Fluid inserts each
// send directly after its writer, so of two gradients of one writer the later one is sent first.
//
// Also declares the control variable of a barrier after the sends, as Fluid does even in programs without
// one.
Status ForEachGradient(BlockEdit& main, const PassContext& context, std::string_view pass,
                       const std::function<void(const plan::ParamPlacement& param, OpId writer)>& place);

// Returns a send of the gradient to its pservers without its pieces, and declares its control variable.
SendSpec SendOf(const plan::ParamPlacement& param, const PassContext& context, BlockEdit& main);

}  // namespace penstock::passes
