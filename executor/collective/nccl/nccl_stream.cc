#include "executor/collective/nccl/nccl_stream.h"

#include <poll.h>

#include <ctime>
#include <thread>

#include "framework/runtime/clock.h"

namespace penstock::collective {
namespace {

constexpr char kNcclFailed[] = "E-collective-nccl";

// Paces a polling wait: it yields at first, because small operations take microseconds, and then sleeps.
class Patience {
 public:
  void Rest() {
    if (++looks_ < kEager) {
      std::this_thread::yield();
    } else {
      const timespec rest{.tv_sec = 0, .tv_nsec = looks_ < 2 * kEager ? 50'000 : 500'000};
      nanosleep(&rest, nullptr);  // CUDA does not wake this thread
    }
  }

 private:
  static constexpr int kEager = 2000;
  int looks_ = 0;
};

}  // namespace

NcclStream::~NcclStream() {
  static_cast<void>(UseDevice());
  if (comm_ != nullptr) Leave();
  if (memory_ != nullptr) api_.cuda.free(memory_);
  if (event_ != nullptr) api_.cuda.event_destroy(event_);
  if (stream_ != nullptr) api_.cuda.stream_destroy(stream_);
}

// Other ranks may still run their last operation, which no longer needs this rank.
void NcclStream::Leave() {
  constexpr int kMostMilliseconds = 2000;
  int error = api_.nccl.comm_finalize(comm_);
  for (int i = 0; error == kNcclInProgress && i < kMostMilliseconds; ++i) {
    poll(nullptr, 0, 1);
    if (api_.nccl.comm_get_async_error(comm_, &error) != kNcclSuccess) break;
  }
  error == kNcclSuccess ? api_.nccl.comm_destroy(comm_) : api_.nccl.comm_abort(comm_);
  comm_ = nullptr;
}

Status NcclStream::UseDevice() { return OfCuda("cudaSetDevice", api_.cuda.set_device(device_)); }

Status NcclStream::Prepare() {
  PENSTOCK_RETURN_IF_ERROR(UseDevice());
  PENSTOCK_RETURN_IF_ERROR(
      OfCuda("cudaStreamCreateWithFlags", api_.cuda.stream_create(&stream_, kCudaStreamNonBlocking)));
  return OfCuda("cudaEventCreateWithFlags", api_.cuda.event_create(&event_, kCudaEventDisableTiming));
}

Status NcclStream::Connect(const NcclId& id, int rank, int size, const Stop& stop) {
  constexpr std::string_view kName = "ncclCommInitRankConfig";
  NcclConfig config;
  PENSTOCK_RETURN_IF_ERROR(OfNccl(kName, api_.nccl.comm_init_rank_config(&comm_, size, id, rank, &config)));
  return Settle(kName, stop);
}

Result<std::byte*> NcclStream::Memory(std::size_t bytes) {
  if (bytes > memory_bytes_) {
    if (memory_ != nullptr) PENSTOCK_RETURN_IF_ERROR(OfCuda("cudaFree", api_.cuda.free(memory_)));
    memory_ = nullptr;
    memory_bytes_ = 0;
    PENSTOCK_RETURN_IF_ERROR(OfCuda("cudaMalloc", api_.cuda.malloc(&memory_, bytes)));
    memory_bytes_ = bytes;
  }
  return static_cast<std::byte*>(memory_);
}

Status NcclStream::ToGpu(std::byte* gpu, const std::byte* host, std::size_t bytes) {
  if (bytes == 0) return OkStatus();
  return OfCuda("cudaMemcpyAsync", api_.cuda.memcpy_async(gpu, host, bytes, kCudaHostToDevice, stream_));
}

Status NcclStream::ToHost(std::byte* host, const std::byte* gpu, std::size_t bytes) {
  if (bytes == 0) return OkStatus();
  return OfCuda("cudaMemcpyAsync", api_.cuda.memcpy_async(host, gpu, bytes, kCudaDeviceToHost, stream_));
}

Status NcclStream::Call(std::string_view name, const std::function<int()>& call, const Stop& stop) {
  const int result = call();
  if (result == kNcclSuccess) return OkStatus();
  PENSTOCK_RETURN_IF_ERROR(OfNccl(name, result));
  return Settle(name, stop);
}

// Ends the group of calls even after an error, because NCCL would otherwise keep it open on this thread.
Status NcclStream::Group(const std::function<Status()>& calls, const Stop& stop) {
  PENSTOCK_RETURN_IF_ERROR(OfNccl("ncclGroupStart", api_.nccl.group_start()));
  const Status status = calls();
  const int end = api_.nccl.group_end();
  PENSTOCK_RETURN_IF_ERROR(status);
  return Call(
      "ncclGroupEnd", [&] { return end; }, stop);
}

Status NcclStream::Settle(std::string_view name, const Stop& stop) {
  for (Patience patience;; patience.Rest()) {
    int error = kNcclSuccess;
    PENSTOCK_RETURN_IF_ERROR(OfNccl("ncclCommGetAsyncError", api_.nccl.comm_get_async_error(comm_, &error)));
    if (error == kNcclSuccess) return OkStatus();
    PENSTOCK_RETURN_IF_ERROR(OfNccl(name, error));
    PENSTOCK_RETURN_IF_ERROR(stop());
  }
}

Status NcclStream::Finish(const Stop& stop) {
  PENSTOCK_RETURN_IF_ERROR(OfCuda("cudaEventRecord", api_.cuda.event_record(event_, stream_)));
  for (Patience patience;; patience.Rest()) {
    const int ready = api_.cuda.event_query(event_);
    if (ready == kCudaSuccess) return OkStatus();
    if (ready != kCudaNotReady) return OfCuda("cudaEventQuery", ready);
    int error = kNcclSuccess;
    PENSTOCK_RETURN_IF_ERROR(OfNccl("ncclCommGetAsyncError", api_.nccl.comm_get_async_error(comm_, &error)));
    PENSTOCK_RETURN_IF_ERROR(OfNccl("NCCL's kernel", error));
    PENSTOCK_RETURN_IF_ERROR(stop());
  }
}

void NcclStream::Abort() {
  if (comm_ == nullptr) return;
  api_.nccl.comm_abort(comm_);
  comm_ = nullptr;
  api_.cuda.stream_synchronize(stream_);
}

Status NcclStream::OfNccl(std::string_view name, int error) const {
  if (error == kNcclSuccess || error == kNcclInProgress) return OkStatus();
  const char* const last = api_.nccl.get_last_error(comm_);
  const std::string why = StrCat(name, " failed: ", api_.nccl.get_error_string(error), " (", error, ")",
                                 last == nullptr || *last == '\0' ? "" : ": ", last == nullptr ? "" : last);
  if (error == kNcclRemoteError || error == kNcclSystemError)
    return Unavailable("E-collective-peer-lost", why);
  return FailedPrecondition(kNcclFailed, why);
}

Status NcclStream::OfCuda(std::string_view name, int error) const {
  if (error == kCudaSuccess) return OkStatus();
  return FailedPrecondition(kNcclFailed, name, " failed on device ", device_, ": ",
                            api_.cuda.get_error_string(error));
}

}  // namespace penstock::collective
