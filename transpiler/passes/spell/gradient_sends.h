// Where and of what gradients are sent, for the passes that send them.
#pragma once

#include <functional>
#include <string_view>

#include "framework/ir/edit.h"
#include "transpiler/passes/context.h"
#include "transpiler/passes/spell/comm_ops.h"

namespace penstock::passes {

// Calls `place` for each planned gradient with the op that writes it last: a gradient summed over several
// uses is written more than once. Fluid puts each send right behind the writer, so of two gradients of one
// writer the later stands first; the calls are made in the order that gives the same.
//
// Declares the control variable of a barrier behind them, which Fluid does in programs without one too.
Status ForEachGradient(BlockEdit& main, const PassContext& context, std::string_view pass,
                       const std::function<void(const plan::ParamPlacement& param, OpId writer)>& place);

// A send of this gradient to its pservers, its pieces still to be said; its control variable is declared.
SendSpec SendOf(const plan::ParamPlacement& param, const PassContext& context, BlockEdit& main);

}  // namespace penstock::passes
