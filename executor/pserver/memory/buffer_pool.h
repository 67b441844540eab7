// Reuses the memory of short-lived tensors, which live from a gradient to its update, or from an update to
// the last reply. The server's memory is thus what is alive at one time, in pages that it already has, and no
// step waits for new pages.
//
//   Tensor sum = pool.Make(DType::kFp32, {256, 1024});   // content undefined
//   sum = Tensor();                                      // the next tensor of 1 MB gets this memory
//
// Thread-safe. Tensors may outlive the pool.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "framework/tensor/tensor.h"

namespace penstock::pserver {

class BufferPool {
 public:
  // Throws std::bad_alloc.
  Tensor Make(DType type, const Shape& shape);
  std::size_t bytes_made() const;  // of all existing buffers, in use or not

 private:
  struct Free {
    struct Sized {
      std::vector<std::shared_ptr<Buffer>> free;
      std::size_t made = 0;
    };
    mutable std::mutex mutex;
    std::map<std::size_t, Sized> sized;  // by buffer size
    std::size_t bytes_made = 0;
  };
  std::shared_ptr<Buffer> MakeBuffer(std::size_t bytes);

  const std::shared_ptr<Free> free_ = std::make_shared<Free>();
};

}  // namespace penstock::pserver
