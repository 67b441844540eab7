// Removes gradients that ops read although no op writes them. Fluid's append_backward makes sums with such
// parts, and Fluid's sum ignores them:
//
//   (no op writes h@GRAD@RENAME@block0@0)
//   before  h@GRAD = sum(X=[h@GRAD@RENAME@block0@0, h@GRAD@RENAME@block0@1]) @backward
//   after   h@GRAD = sum(X=[h@GRAD@RENAME@block0@1]) @backward
//
// A while_grad may even name a gradient that is not declared:
//
//   (b@GRAD is not declared)
//   before  (X@GRAD=[...]) = while_grad(..., Out@GRAD=[a@GRAD, b@GRAD])
//   after   (X@GRAD=[...]) = while_grad(..., Out@GRAD=[a@GRAD, @EMPTY@])
#pragma once

#include <optional>

#include "framework/ir/program.h"

namespace penstock::plan {

// Returns the program with this change and without the declarations of the removed parts; nullopt if there
// are none. Keeps a part that is persistable or fed, and a sum that would have no parts left.
std::optional<Program> WithoutUnwrittenParts(const Program& main);

}  // namespace penstock::plan
