// An NCCL communicator with the stream in which its calls run, and GPU memory for the data.
//
//   NcclStream stream(api, device);
//   PENSTOCK_RETURN_IF_ERROR(stream.Prepare());
//   PENSTOCK_RETURN_IF_ERROR(stream.Connect(id, rank, size, stop));
//   PENSTOCK_ASSIGN_OR_RETURN(std::byte* const gpu, stream.Memory(bytes));
//   PENSTOCK_RETURN_IF_ERROR(stream.ToGpu(gpu, data, bytes));
//   PENSTOCK_RETURN_IF_ERROR(stream.Call("ncclAllReduce", [&] { return api.nccl.all_reduce(...); }, stop));
//   PENSTOCK_RETURN_IF_ERROR(stream.ToHost(data, gpu, bytes));
//   PENSTOCK_RETURN_IF_ERROR(stream.Finish(stop));
//
// Waits call `stop` repeatedly, and end with its error. NCCL's errors: kUnavailable E-collective-peer-lost if
// NCCL blames a rank or the network, else kFailedPrecondition E-collective-nccl; CUDA's errors: the latter.
// After any error call Abort. From one thread at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "executor/collective/nccl/gpu_api.h"
#include "framework/base/status.h"

namespace penstock::collective {

class NcclStream {
 public:
  // Returns an error to end the wait, ok to go on. Called every millisecond or more often.
  using Stop = std::function<Status()>;

  NcclStream(const GpuApi& api, int device) : api_(api), device_(device) {}
  ~NcclStream();
  NcclStream(const NcclStream&) = delete;
  NcclStream& operator=(const NcclStream&) = delete;

  // Sets up the device, a stream and an event. Does not wait.
  Status Prepare();
  // Returns when all ranks have called it.
  Status Connect(const NcclId& id, int rank, int size, const Stop& stop);
  // Makes the calling thread use this device. Call it first on each thread.
  Status UseDevice();

  // GPU memory of at least `bytes`, the same until more is requested. The stream must be idle.
  Result<std::byte*> Memory(std::size_t bytes);
  Status ToGpu(std::byte* gpu, const std::byte* host, std::size_t bytes);
  Status ToHost(std::byte* host, const std::byte* gpu, std::size_t bytes);
  // Makes a call of NCCL, which may still work after the call returns, and waits until it has queued its
  // work.
  Status Call(std::string_view name, const std::function<int()>& call, const Stop& stop);
  // The same for several calls that NCCL runs together; `calls` passes the result of each to Add.
  Status Group(const std::function<Status()>& calls, const Stop& stop);
  Status Add(std::string_view name, int result) const { return OfNccl(name, result); }
  // Waits until the stream has finished all work.
  Status Finish(const Stop& stop);
  // Ends the communicator and the stream's work; afterwards the caller's memory is no longer used.
  void Abort();

  NcclHandle comm() const { return comm_; }
  CudaStream stream() const { return stream_; }

 private:
  Status OfNccl(std::string_view name, int error) const;
  Status OfCuda(std::string_view name, int error) const;
  // Waits until ncclCommGetAsyncError no longer reports "in progress".
  Status Settle(std::string_view name, const Stop& stop);
  void Leave();

  const GpuApi& api_;
  const int device_;
  NcclHandle comm_ = nullptr;
  CudaStream stream_ = nullptr;
  CudaEvent event_ = nullptr;
  void* memory_ = nullptr;
  std::size_t memory_bytes_ = 0;
};

}  // namespace penstock::collective
