#include "operators/cuda/cuda_kernels.h"
#include "operators/math/mul_kernels.h"

namespace penstock {

void RegisterMulCuda(OpDef& mul) {
  mul.Kernel<Cuda, MulKernel, float, double>().GradKernel<Cuda, MulGradKernel, float, double>();
}

}  // namespace penstock
