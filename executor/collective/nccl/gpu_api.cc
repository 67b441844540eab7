#include "executor/collective/nccl/gpu_api.h"

#include <dlfcn.h>

#include <initializer_list>
#include <string>

namespace penstock::collective {
namespace {

constexpr char kNccl[] = "E-collective-nccl";

// A library that stays loaded.
class Library {
 public:
  Library(std::initializer_list<const char*> names) {
    for (const char* const name : names) {
      if (loaded_ == nullptr) loaded_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    if (loaded_ == nullptr) Note();
  }

  template <typename Function>
  Library& Find(const char* name, std::function<Function>& function) {
    void* const symbol = loaded_ == nullptr ? nullptr : dlsym(loaded_, name);
    if (symbol != nullptr) function = reinterpret_cast<Function*>(symbol);
    if (loaded_ != nullptr && symbol == nullptr) Note();
    return *this;
  }
  Status End(std::string_view what) const {
    if (lacks_.empty()) return OkStatus();
    return FailedPrecondition(kNccl, what, " cannot be loaded: ", lacks_)
        .With("name its folder in LD_LIBRARY_PATH");
  }

 private:
  void Note() {
    const char* const why = dlerror();
    if (lacks_.empty()) lacks_ = why == nullptr ? "no reason is known" : why;
  }
  void* loaded_ = nullptr;
  std::string lacks_;
};

Status LoadNccl(NcclApi& api) {
  Library library({"libnccl.so.2"});
  library.Find("ncclGetVersion", api.get_version)
      .Find("ncclGetErrorString", api.get_error_string)
      .Find("ncclGetLastError", api.get_last_error)
      .Find("ncclGetUniqueId", api.get_unique_id)
      .Find("ncclCommInitRankConfig", api.comm_init_rank_config)
      .Find("ncclCommGetAsyncError", api.comm_get_async_error)
      .Find("ncclCommFinalize", api.comm_finalize)
      .Find("ncclCommDestroy", api.comm_destroy)
      .Find("ncclCommAbort", api.comm_abort)
      .Find("ncclGroupStart", api.group_start)
      .Find("ncclGroupEnd", api.group_end)
      .Find("ncclAllReduce", api.all_reduce)
      .Find("ncclReduceScatter", api.reduce_scatter)
      .Find("ncclAllGather", api.all_gather)
      .Find("ncclBroadcast", api.broadcast)
      .Find("ncclReduce", api.reduce)
      .Find("ncclSend", api.send)
      .Find("ncclRecv", api.recv);
  PENSTOCK_RETURN_IF_ERROR(library.End("NCCL"));
  int version = 0;
  if (api.get_version(&version) == kNcclSuccess && version >= kNcclOldestVersion) return OkStatus();
  return FailedPrecondition(kNccl, "NCCL here has version number ", version, "; at least ",
                            kNcclOldestVersion, " (2.14) is needed");
}

Status LoadCuda(CudaApi& api) {
  Library library({"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0", "libcudart.so"});
  library.Find("cudaGetErrorString", api.get_error_string)
      .Find("cudaGetDeviceCount", api.get_device_count)
      .Find("cudaSetDevice", api.set_device)
      .Find("cudaMalloc", api.malloc)
      .Find("cudaFree", api.free)
      .Find("cudaMemcpyAsync", api.memcpy_async)
      .Find("cudaStreamCreateWithFlags", api.stream_create)
      .Find("cudaStreamSynchronize", api.stream_synchronize)
      .Find("cudaStreamDestroy", api.stream_destroy)
      .Find("cudaEventCreateWithFlags", api.event_create)
      .Find("cudaEventRecord", api.event_record)
      .Find("cudaEventQuery", api.event_query)
      .Find("cudaEventDestroy", api.event_destroy);
  return library.End("CUDA's runtime (libcudart)");
}

Result<GpuApi> Load() {
  GpuApi api;
  PENSTOCK_RETURN_IF_ERROR(LoadNccl(api.nccl));
  PENSTOCK_RETURN_IF_ERROR(LoadCuda(api.cuda));
  return api;
}

}  // namespace

Result<const GpuApi*> LoadGpuApi() {
  static const Result<GpuApi> loaded = Load();
  if (!loaded.ok()) return loaded.status();
  return &*loaded;
}

Result<int> CountGpus(const GpuApi& api) {
  int count = 0;
  const int error = api.cuda.get_device_count(&count);
  if (error != kCudaSuccess)
    return FailedPrecondition(kNccl, "no GPU can be used here: ", api.cuda.get_error_string(error));
  if (count < 1) return FailedPrecondition(kNccl, "this process sees no GPU");
  return count;
}

}  // namespace penstock::collective
