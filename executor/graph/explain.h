// Extends an error of one op so that the author of the program can act on it: adds the op as printed, the
// facts about its arguments, and the user's line.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/op/infer_context.h"

namespace penstock::exec {

// "f32[?, 784]", "rows<f32[100, 8]>", "array<f32[?]>", "control".
std::string TypeText(const TensorDesc& info);
std::string TypeText(const Var& var);

// Adds to `status`
//     op 3 of block 0:  fc_1.out = mul(X=fc_0.out, Y=fc_1.w)
//       X = fc_0.out : f32[64, 784]
//     written at train.py:42 in mlp
Status ExplainOp(Status status, const Program& program, int block, int position,
                 std::span<const std::string> facts = {});

}  // namespace penstock::exec
