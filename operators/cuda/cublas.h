// cuBLAS, loaded when a kernel first asks for it. Linked, it would be 200 MB of every process, those of
// pservers and of trainers on CPUs too, and a machine without it could not even run the transpiler. For .cu
// files.
//
//   PENSTOCK_ASSIGN_OR_RETURN(const Cublas* cublas, LoadCublas());
//   cublas->set_stream(handle, stream);
#pragma once

#include <cublas_v2.h>

#include "framework/base/status.h"

namespace penstock {

struct Cublas {
  decltype(&cublasCreate) create = nullptr;
  decltype(&cublasSetStream) set_stream = nullptr;
  decltype(&cublasGetStatusString) status_string = nullptr;
  decltype(&cublasSgemmStridedBatched) gemm_f32 = nullptr;
  decltype(&cublasDgemmStridedBatched) gemm_f64 = nullptr;
};

// The same object at each call; it lives as long as the process. Thread-safe.
// kFailedPrecondition E-cublas-load: the library is not found, or is not of the version this build is for.
Result<const Cublas*> LoadCublas();

}  // namespace penstock
