// Adds to an error the op at which it happened:
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

// `position` is the op's position in the block, or where it would be inserted. Returns an ok status
// unchanged.
Status AtOp(Status status, const Program& program, int block, int position, const Op& op);

}  // namespace penstock
