// Gradients that Fluid's append_backward adds up although nothing comes back for one of them.
//
//   before  h@GRAD = sum(X=[h@GRAD@RENAME@block0@0, h@GRAD@RENAME@block0@1]) @backward    nobody writes the
//   first after   h@GRAD = sum(X=[h@GRAD@RENAME@block0@1]) @backward
//
// Fluid's op takes such a part for nothing. A while_grad may name a gradient that is not declared at all:
//
//   before  (X@GRAD=[...]) = while_grad(..., Out@GRAD=[a@GRAD, b@GRAD])    nobody declares b@GRAD
//   after   (X@GRAD=[...]) = while_grad(..., Out@GRAD=[a@GRAD, @EMPTY@])
#pragma once

#include <optional>

#include "framework/ir/program.h"

namespace penstock::plan {

// The program so changed, without the declarations of those parts; nothing if it has none. A part that lasts
// or is fed stays, and so does a sum of which nothing would be left.
std::optional<Program> WithoutUnwrittenParts(const Program& main);

}  // namespace penstock::plan
