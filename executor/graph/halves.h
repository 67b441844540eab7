// Lets programs with float16 run on CPUs, whose kernels compute in float32: an op without a kernel for
// float16 reads its float16 inputs converted to float32, and its results are rounded to float16.
//
//   h : f16[?, 10] = mul(X=x, Y=w)        x, w : f16
//
// becomes
//
//   x@FP32 = cast(X=x)
//   w@FP32 = cast(X=w)
//   h@FP32 = mul(X=x@FP32, Y=w@FP32)
//   h = cast(X=h@FP32)
#pragma once

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/op/op_registry.h"

namespace penstock::exec {

// Returns the program with the ops of one block changed in this way; `program` itself if no tensor that the
// block's ops name is declared as float16. A variable that was converted is not converted again until it is
// written.
Result<Program> ComputeHalvesInFloat(const OpRegistry& ops, const Program& program, int block);

}  // namespace penstock::exec
