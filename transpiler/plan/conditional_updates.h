// Turns conditional updates of parameters, such as LookaheadOptimizer's, into plain ops: all ops of the block
// run in each step, on temporaries, and the results are selected by the condition. Pservers, which run no
// blocks in an update, can then compute them like other ops, on slices too.
//
//   before  conditional_block(Cond=due) {              @optimize
//             moved = elementwise_add(X=a, Y=b) ; w = assign(X=moved)
//           }
//   after   due@MASK = cast(X=due)
//           moved = elementwise_add(X=a, Y=b) ; w@IF = assign(X=moved)
//           w = select_input(X=[w, w@IF], Mask=due@MASK)            @optimize(w, w@GRAD)
#pragma once

#include <optional>

#include "framework/ir/program.h"
#include "framework/op/op_registry.h"

namespace penstock::plan {

// Returns the program with the conditional blocks of block 0 replaced that write a trained parameter after
// its gradient, or other values on which an update depends; nullopt if there is none. A block stays, and the
// analysis refuses it, if it has an op that is not known, has effects, draws random numbers, is an optimizer
// or runs a block other than a condition's. So does a block whose condition depends on a variable that the
// program counts up, unless `counts_steps`: with gradients that are applied as they arrive, pservers count
// the steps of all trainers, and an update might see a number never or twice. Ops of the optimize role
// without a parameter, on which conditions depend, join the learning-rate schedule.
std::optional<Program> WithoutConditionalUpdates(const OpRegistry& ops, const Program& main,
                                                 bool counts_steps);

}  // namespace penstock::plan
