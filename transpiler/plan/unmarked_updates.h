// Marks updates of parameters that the user wrote without roles, after append_backward:
//
//   before  g = mul_grad(...) @backward(w, g) ; then = elementwise_sub(X=w, Y=step) ; w = assign(X=then)
//   after   ...                                 then = elementwise_sub(X=w, Y=step)
//           w = assign(X=then) @optimize(w, g)
#pragma once

#include <optional>

#include "framework/ir/program.h"

namespace penstock::plan {

// Returns the program with each forward op of block 0 that writes a parameter after its gradient marked as
// part of the parameter's update; nullopt if there is none. Ops that run blocks keep their role.
std::optional<Program> WithMarkedUpdates(const Program& main);

}  // namespace penstock::plan
