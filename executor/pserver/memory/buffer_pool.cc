#include "executor/pserver/memory/buffer_pool.h"

#include <utility>

#include "framework/tensor/shared_heap.h"

namespace penstock::pserver {
namespace {

// Smaller buffers are left to the allocator.
constexpr std::size_t kPooledBytes = std::size_t{64} << 10;

}  // namespace

std::shared_ptr<Buffer> BufferPool::MakeBuffer(std::size_t bytes) {
  std::shared_ptr<Buffer> buffer = AllocateToShow(bytes);
  const std::lock_guard lock(free_->mutex);
  Free::Sized& sized = free_->sized[bytes];
  sized.free.reserve(++sized.made);  // so that returning a buffer allocates nothing
  free_->bytes_made += bytes;
  return buffer;
}

Tensor BufferPool::Make(DType type, const Shape& shape) {
  const std::size_t bytes = static_cast<std::size_t>(shape.Count()) * SizeOf(type);
  if (bytes < kPooledBytes) return {type, shape};
  std::shared_ptr<Buffer> buffer;
  {
    const std::lock_guard lock(free_->mutex);
    std::vector<std::shared_ptr<Buffer>>& free = free_->sized[bytes].free;
    if (!free.empty()) {
      buffer = std::move(free.back());
      free.pop_back();
    }
  }
  if (buffer == nullptr) buffer = MakeBuffer(bytes);
  std::byte* const data = buffer->data();
  std::shared_ptr<void> owner(data, [free = free_, buffer = std::move(buffer)](void*) mutable {
    const std::lock_guard lock(free->mutex);
    const std::size_t size = buffer->bytes();
    free->sized[size].free.push_back(std::move(buffer));
  });
  return {type, shape, Buffer::Borrow(data, bytes, std::move(owner)), 0};
}

std::size_t BufferPool::bytes_made() const {
  const std::lock_guard lock(free_->mutex);
  return free_->bytes_made;
}

}  // namespace penstock::pserver
