// Where kernels run: memory, and streams of work in order. The host is a device whose streams are always
// idle.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "framework/base/status.h"
#include "framework/runtime/services.h"
#include "framework/tensor/tensor.h"

namespace penstock {

class Allocator {
 public:
  virtual ~Allocator() = default;
  // Memory of this device, aligned to 64 bytes, given back with its last owner. Thread-safe.
  // kFailedPrecondition E-device-memory: names the sizes asked for, in use, and there are.
  virtual Result<std::shared_ptr<Buffer>> Allocate(std::size_t bytes) = 0;
  virtual std::size_t bytes_in_use() const = 0;
};

// Work on one stream is done in the order it was enqueued.
class Stream {
 public:
  virtual ~Stream() = default;
  // Waits until all that was enqueued is done; errors of that work are returned here.
  virtual Status Synchronize() = 0;
  virtual void* native() const = 0;  // a cudaStream_t; null on the host
};

class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceKind kind() const = 0;
  virtual int index() const = 0;
  virtual std::string name() const = 0;
  virtual Allocator& allocator() = 0;
  virtual Result<std::unique_ptr<Stream>> NewStream() = 0;
  // Copies between plain tensors of one type and count, from the host to this device or back. Enqueued on
  // `stream`; the tensors must stay as they are until it has been synchronised.
  virtual Status CopyIn(const Tensor& host, Tensor& device, Stream& stream) = 0;
  virtual Status CopyOut(const Tensor& device, Tensor& host, Stream& stream) = 0;
};

// The host's memory. Lives for ever.
Device& HostDevice();

}  // namespace penstock
