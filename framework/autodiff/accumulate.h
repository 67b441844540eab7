// Gradients of variables that several ops use. Each use contributes a part under a name of its own, and a
// `sum` adds the parts before the first op that reads the gradient, or at the end if no op reads it (a shared
// parameter).
//
//   before  w@GRAD = f_grad(...)                         w@GRAD = g_grad(...)
//   after   w@GRAD@RENAME@block0@0 = f_grad(...)         w@GRAD@RENAME@block0@1 = g_grad(...)
//           w@GRAD = sum(X=[w@GRAD@RENAME@block0@0, w@GRAD@RENAME@block0@1])
#pragma once

#include <vector>

#include "framework/autodiff/grad_ops.h"

namespace penstock {

// Gradients of a block's outer variables that exist before the block's first op, because the enclosing block
// has them. Gradients that the block writes are added to them until an op consumes the sum. For a tensor
// array, the op that writes its elements adds in place.
struct IncomingGrads {
  NameSet tensors, arrays;
};

std::vector<Op> AddUpRepeatedOutputs(std::vector<Op> grads, int block, GradNames& names,
                                     const IncomingGrads& incoming = {});

}  // namespace penstock
