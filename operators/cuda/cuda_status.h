// CUDA's error codes as Status. For .cu files.
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

// Threads of a block, and the blocks that give each of `count` elements a thread.
inline constexpr int kBlockThreads = 256;
inline unsigned BlocksFor(std::int64_t count) {
  return static_cast<unsigned>((count + kBlockThreads - 1) / kBlockThreads);
}

}  // namespace penstock
