// cuBLAS, loaded when a kernel first asks for it. If it were linked, it would add 200 MB to every process,
// including pservers and CPU trainers, and a machine without it could not even run the transpiler. Include
// this header from .cu files only.
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

// Loads the library at the first call. Returns the same object each time; it lives as long as the process.
// Thread-safe. kFailedPrecondition E-cublas-load: the library is not found, or has another version than the
// one for which this build was compiled.
Result<const Cublas*> LoadCublas();

}  // namespace penstock
