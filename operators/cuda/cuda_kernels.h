// Functions that add an op's CUDA kernels to its declaration, each defined in the op's .cu file. In a build
// without CUDA they do nothing.
#pragma once

#include "framework/op/op_def.h"

namespace penstock {

#ifdef PENSTOCK_WITH_CUDA
void RegisterMulCuda(OpDef& mul);
void RegisterElementwiseAddCuda(OpDef& elementwise_add);
void RegisterSgdCuda(OpDef& sgd);
#else
inline void RegisterMulCuda(OpDef&) {}
inline void RegisterElementwiseAddCuda(OpDef&) {}
inline void RegisterSgdCuda(OpDef&) {}
#endif

}  // namespace penstock
