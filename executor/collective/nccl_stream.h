// A communicator of NCCL's with the stream in which its calls run, and memory of the GPU for what they move.
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
// Waits ask `stop` all the while, and end with its error. Errors of NCCL's: kUnavailable
// E-collective-peer-lost where it says that a rank or the network is the cause, else kFailedPrecondition
// E-collective-nccl; of CUDA's: the latter. After any error: Abort. From one thread at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "executor/collective/gpu_api.h"
#include "framework/base/status.h"

namespace penstock::collective {

class NcclStream {
 public:
  // Why not to wait any longer; ok: go on. Called every millisecond or more often.
  using Stop = std::function<Status()>;

  NcclStream(const GpuApi& api, int device) : api_(api), device_(device) {}
  ~NcclStream();
  NcclStream(const NcclStream&) = delete;
  NcclStream& operator=(const NcclStream&) = delete;

  // The device, a stream and an event of it. Waits for nobody.
  Status Prepare();
  // Returns when all ranks have called it.
  Status Connect(const NcclId& id, int rank, int size, const Stop& stop);
  // The calling thread works on this device from now on. Before other calls on a thread.
  Status UseDevice();

  // Of at least so many bytes, the same memory until more is asked for. The stream has nothing to do.
  Result<std::byte*> Memory(std::size_t bytes);
  Status ToGpu(std::byte* gpu, const std::byte* host, std::size_t bytes);
  Status ToHost(std::byte* host, const std::byte* gpu, std::size_t bytes);
  // Runs a call of NCCL's, which may go on after it returns, until it has put its work into the stream.
  Status Call(std::string_view name, const std::function<int()>& call, const Stop& stop);
  // The same of several calls, which NCCL does at the same time: `calls` makes each by Add.
  Status Group(const std::function<Status()>& calls, const Stop& stop);
  Status Add(std::string_view name, int result) const { return OfNccl(name, result); }
  // Waits until the stream has done all.
  Status Finish(const Stop& stop);
  // Ends the communicator and what is in the stream; nobody touches the caller's memory any more.
  void Abort();

  NcclHandle comm() const { return comm_; }
  CudaStream stream() const { return stream_; }

 private:
  Status OfNccl(std::string_view name, int error) const;
  Status OfCuda(std::string_view name, int error) const;
  // Until ncclCommGetAsyncError says neither "in progress" nor an error.
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
