// Memory of this process that other processes of the host can map: large messages between them are allocated
// here and sent without a copy (executor/transport/local_link.h).
//
//   std::shared_ptr<Buffer> buffer = AllocateToShow(4 << 20);       // the gradient that a send op reads
//   ...
//   if (const auto at = heap.OffsetOf(data, size)) { ... show (heap.fd(), *at, size) }
//
// The memory is a memfd and has no name, so the system frees it with the last process that maps it, however
// that process ends. Its size is sealed, so no process can remove pages while another reads them. Pages are
// allocated on first use; free ranges of at least 64 MB are returned to the system. A forked child gets a
// private copy and allocates elsewhere.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "framework/base/status.h"
#include "framework/tensor/tensor.h"

namespace penstock {

class SharedHeap {
 public:
  // This process's heap, made on first use and never destroyed. Null if the system provides none, or if
  // the address space is limited (`ulimit -v`).
  static SharedHeap* OfThisProcess();

  // A heap of that many bytes of address space. kUnavailable E-run-shared-memory: the system provides none.
  static Result<std::unique_ptr<SharedHeap>> Make(std::size_t bytes);
  ~SharedHeap();  // destroy after the last buffer
  SharedHeap(const SharedHeap&) = delete;
  SharedHeap& operator=(const SharedHeap&) = delete;

  // Allocates `bytes` > 0, page-aligned. Takes the lowest free offset, because its pages are most likely to
  // exist already. Null if there is no room.
  std::shared_ptr<Buffer> Allocate(std::size_t bytes);

  // The offset of these bytes, if all of them lie in this heap.
  std::optional<std::uint64_t> OffsetOf(const std::byte* data, std::size_t size) const;
  int fd() const { return fd_; }

 private:
  struct Room {
    std::size_t size = 0;
    std::size_t used = 0;  // upper bound of the bytes in this range that have pages
  };

  SharedHeap(int fd, std::byte* pages, std::size_t bytes);
  std::optional<std::uint64_t> Take(std::size_t size);
  void Free(std::uint64_t offset, std::size_t size);
  void LeaveToParent();  // call in a forked child

  const int fd_;
  std::byte* const pages_;
  const std::size_t bytes_;
  std::atomic<bool> left_ = false;  // this process is a forked child of the heap's owner
  std::mutex mutex_;
  std::map<std::uint64_t, Room> free_;  // by offset; neighbours are merged
};

// As Buffer::Allocate, in this process's shared heap if the size is worth it and there is room.
std::shared_ptr<Buffer> AllocateToShow(std::size_t bytes);

}  // namespace penstock
