// Adds to an error where in a program it happened, in the form that people know from every error:
//
//   mul: width of X (784) must equal height of Y (512)   [E-shape-mul]
//     op 3 of block 0:  fc_1.out = mul(X=fc_0.out, Y=fc_1.w)
//       X = fc_0.out : f32[?, 784]
//       Y = fc_1.w   : f32[512, 10]
//     written at train.py:42 in mlp
#pragma once

#include "framework/base/status.h"
#include "framework/ir/program.h"

namespace penstock {

// `position` is the op's place in the block, or the place where it was about to go. Passes ok through.
Status AtOp(Status status, const Program& program, int block, int position, const Op& op);

}  // namespace penstock
