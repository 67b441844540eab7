// CUDA's error codes as Status, and launch sizes. Include this header from .cu files only.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <string_view>

#include "framework/base/status.h"
#include "framework/op/kernel.h"

namespace penstock {

inline Status CudaOk(std::string_view doing, cudaError_t error) {
  if (error == cudaSuccess) return OkStatus();
  return InternalError("E-cuda", "CUDA failed while ", doing, ": ", cudaGetErrorString(error));
}

inline cudaStream_t StreamOf(const KernelSetup& k) { return static_cast<cudaStream_t>(k.services().stream); }

// Threads per block, and the number of blocks for one thread per element.
inline constexpr int kBlockThreads = 256;
inline unsigned BlocksFor(std::int64_t count) {
  return static_cast<unsigned>((count + kBlockThreads - 1) / kBlockThreads);
}

}  // namespace penstock
