// Where a variable is used several times, each use gives a part of its gradient. The parts get names of their
// own and a `sum` adds them, before the first op that reads the gradient, or at the end where nobody does (a
// shared parameter).
//
//   before  w@GRAD = f_grad(...)                         w@GRAD = g_grad(...)
//   after   w@GRAD@RENAME@block0@0 = f_grad(...)         w@GRAD@RENAME@block0@1 = g_grad(...)
//           w@GRAD = sum(X=[w@GRAD@RENAME@block0@0, w@GRAD@RENAME@block0@1])
#pragma once

#include <vector>

#include "framework/autodiff/grad_ops.h"

namespace penstock {

// Gradients that stand before the first of the ops, because the block around has them: what is written is
// added to them, until an op has used them up. An array is added to in place, by the op that writes its
// elements.
struct IncomingGrads {
  NameSet tensors, arrays;
};

std::vector<Op> AddUpRepeatedOutputs(std::vector<Op> grads, int block, GradNames& names,
                                     const IncomingGrads& incoming = {});

}  // namespace penstock
