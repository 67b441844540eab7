// The functions of NCCL and the CUDA runtime that a group over NCCL calls, as tables: loaded from the
// machine's libraries on first use, or filled by a test that records the calls.
//
//   PENSTOCK_ASSIGN_OR_RETURN(const GpuApi* const api, LoadGpuApi());
//   const int error = api->nccl.all_reduce(in, out, count, kNcclFloat32, kNcclSum, comm, stream);
//
// Numbers and structure layouts are those of NCCL 2's binary interface, so this compiles in every build,
// without headers of NCCL or CUDA; tests compare them with nccl.h where it is installed.
#pragma once

#include <cstddef>
#include <functional>

#include "framework/base/status.h"

namespace penstock::collective {

using NcclHandle = void*;  // ncclComm_t
using CudaStream = void*;
using CudaEvent = void*;

struct NcclId {  // ncclUniqueId
  char bytes[128] = {};
};

// The first fields of ncclConfig_t; its size and version tell NCCL that there are no others.
struct NcclConfig {
  std::size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 0;  // calls return while NCCL still works; ncclCommGetAsyncError tells when it is done
};

enum NcclResult : int { kNcclSuccess = 0, kNcclSystemError = 2, kNcclRemoteError = 6, kNcclInProgress = 7 };
enum NcclType : int {
  kNcclInt8 = 0,
  kNcclUint8 = 1,
  kNcclInt32 = 2,
  kNcclInt64 = 4,
  kNcclFloat16 = 6,
  kNcclFloat32 = 7,
  kNcclFloat64 = 8,
  kNcclBfloat16 = 9
};
enum NcclReduction : int { kNcclSum = 0, kNcclProd = 1, kNcclMax = 2, kNcclMin = 3, kNcclAvg = 4 };
constexpr int kNcclOldestVersion = 21400;  // the first with non-blocking calls; ncclAvg exists since 2.10

enum CudaResult : int { kCudaSuccess = 0, kCudaNotReady = 600 };
enum CudaCopy : int { kCudaHostToDevice = 1, kCudaDeviceToHost = 2 };
constexpr unsigned kCudaStreamNonBlocking = 1, kCudaEventDisableTiming = 2;

// Results are of NcclResult; parameters as in nccl.h.
struct NcclApi {
  std::function<int(int* version)> get_version;
  std::function<const char*(int error)> get_error_string;
  std::function<const char*(NcclHandle)> get_last_error;
  std::function<int(NcclId*)> get_unique_id;
  std::function<int(NcclHandle*, int size, NcclId, int rank, NcclConfig*)> comm_init_rank_config;
  std::function<int(NcclHandle, int* error)> comm_get_async_error;
  std::function<int(NcclHandle)> comm_finalize, comm_destroy, comm_abort;
  std::function<int()> group_start, group_end;
  std::function<int(const void* in, void* out, std::size_t count, int type, int op, NcclHandle, CudaStream)>
      all_reduce;
  std::function<int(const void* in, void* out, std::size_t out_count, int type, int op, NcclHandle,
                    CudaStream)>
      reduce_scatter;
  std::function<int(const void* in, void* out, std::size_t in_count, int type, NcclHandle, CudaStream)>
      all_gather;
  std::function<int(const void* in, void* out, std::size_t count, int type, int root, NcclHandle, CudaStream)>
      broadcast;
  std::function<int(const void* in, void* out, std::size_t count, int type, int op, int root, NcclHandle,
                    CudaStream)>
      reduce;
  std::function<int(const void* in, std::size_t count, int type, int to, NcclHandle, CudaStream)> send;
  std::function<int(void* out, std::size_t count, int type, int from, NcclHandle, CudaStream)> recv;
};

// Results are of CudaResult; parameters as in cuda_runtime_api.h.
struct CudaApi {
  std::function<const char*(int error)> get_error_string;
  std::function<int(int* count)> get_device_count;
  std::function<int(int device)> set_device;
  std::function<int(void** memory, std::size_t bytes)> malloc;
  std::function<int(void* memory)> free;
  std::function<int(void* to, const void* from, std::size_t bytes, int kind, CudaStream)> memcpy_async;
  std::function<int(CudaStream*, unsigned flags)> stream_create;
  std::function<int(CudaStream)> stream_synchronize, stream_destroy;
  std::function<int(CudaEvent*, unsigned flags)> event_create;
  std::function<int(CudaEvent, CudaStream)> event_record;
  std::function<int(CudaEvent)> event_query, event_destroy;
};

struct GpuApi {
  NcclApi nccl;
  CudaApi cuda;
};

// Loads libnccl.so.2 and libcudart.so with the system's loader, once; later calls return the same answer.
// kFailedPrecondition E-collective-nccl: a library is missing or too old.
Result<const GpuApi*> LoadGpuApi();

// The number of GPUs visible to this process, at least one. kFailedPrecondition E-collective-nccl: none; why.
Result<int> CountGpus(const GpuApi& api);

}  // namespace penstock::collective
