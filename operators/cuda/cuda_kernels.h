// The CUDA kernels of ops that have them, added to the op's declaration by its .cu file. A build without CUDA
// has none.
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
