#include "framework/runtime/device.h"

#include <atomic>
#include <new>

namespace penstock {
namespace {

class HostAllocator : public Allocator {
 public:
  Result<std::shared_ptr<Buffer>> Allocate(std::size_t bytes) override {
    std::shared_ptr<Buffer> memory;
    try {
      memory = Buffer::Allocate(bytes);
    } catch (const std::bad_alloc&) {
      return FailedPrecondition("E-device-memory", "host: ", bytes, " bytes asked for; ", bytes_in_use(),
                                " bytes are in use");
    }
    in_use_ += bytes;
    // Counted back when the last owner lets go. The buffer that is handed out borrows from the one that owns.
    std::shared_ptr<void> owner(memory->data(), [this, memory, bytes](void*) { in_use_ -= bytes; });
    return Buffer::Borrow(memory->data(), bytes, std::move(owner));
  }
  std::size_t bytes_in_use() const override { return in_use_; }

 private:
  std::atomic<std::size_t> in_use_{0};
};

class HostStream : public Stream {
 public:
  Status Synchronize() override { return OkStatus(); }
  void* native() const override { return nullptr; }
};

class Host : public Device {
 public:
  DeviceKind kind() const override { return DeviceKind::kCpu; }
  int index() const override { return 0; }
  std::string name() const override { return "host"; }
  Allocator& allocator() override { return allocator_; }
  Result<std::unique_ptr<Stream>> NewStream() override { return std::unique_ptr<Stream>(new HostStream()); }
  Status CopyIn(const Tensor& host, Tensor& device, Stream&) override { return Copy(host, device); }
  Status CopyOut(const Tensor& device, Tensor& host, Stream&) override { return Copy(device, host); }

 private:
  static Status Copy(const Tensor& from, Tensor& to) {
    if (from.dtype() != to.dtype() || from.count() != to.count()) {
      return InvalidArgument("E-device-copy", "a copy of ", DTypeName(from.dtype()), from.shape(), " into ",
                             DTypeName(to.dtype()), to.shape());
    }
    to.CopyFrom(from);
    return OkStatus();
  }
  HostAllocator allocator_;
};

}  // namespace

Device& HostDevice() {
  static Host* host = new Host();
  return *host;
}

}  // namespace penstock
