#include <dlfcn.h>

#include <string>

#include "framework/base/strings.h"
#include "operators/cuda/cublas.h"

namespace penstock {
namespace {

Status CannotLoad() {
  const char* why = dlerror();
  return FailedPrecondition("E-cublas-load",
                            "cuBLAS cannot be loaded: ", why == nullptr ? "it lacks a function" : why)
      .With("kernels that multiply matrices on a GPU need it: name its folder in LD_LIBRARY_PATH");
}

template <typename Function>
bool Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

Result<Cublas> Load() {
  // Wherever the loader looks; then where this build found it.
  const std::string name = StrCat("libcublas.so.", CUBLAS_VER_MAJOR);
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    library = dlopen(StrCat(PENSTOCK_CUBLAS_FOLDER, "/", name).c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (library == nullptr) return CannotLoad();
  Cublas cublas;
  const bool found = Find(library, "cublasCreate_v2", cublas.create) &&
                     Find(library, "cublasSetStream_v2", cublas.set_stream) &&
                     Find(library, "cublasGetStatusString", cublas.status_string) &&
                     Find(library, "cublasSgemmStridedBatched", cublas.gemm_f32) &&
                     Find(library, "cublasDgemmStridedBatched", cublas.gemm_f64);
  if (!found) return CannotLoad();
  return cublas;
}

}  // namespace

Result<const Cublas*> LoadCublas() {
  static const Result<Cublas> loaded = Load();
  if (!loaded.ok()) return loaded.status();
  return &*loaded;
}

}  // namespace penstock
