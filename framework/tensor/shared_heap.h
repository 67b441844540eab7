// Memory of this process that others of this host can be shown: what large messages carry between them is
// made here and not copied on its way (executor/transport/local_link.h).
//
//   std::shared_ptr<Buffer> buffer = AllocateToShow(4 << 20);       // the gradient that a send op reads
//   ...
//   if (const auto at = heap.OffsetOf(data, size)) { ... show (heap.fd(), *at, size) }
//
// The memory has no name (memfd), so it ends with the last process that maps it, however that ends. Its
// size is sealed: nobody can take pages away from under a reader. Pages are there from their first use on;
// stretches of 64 MB that were used and are free are given back to the system. A forked child has a
// private copy from then on, and allocates elsewhere.
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
  // This process's own, made when first asked for; it is never destroyed. Null where the system gives
  // none, and where the address space is limited (`ulimit -v`).
  static SharedHeap* OfThisProcess();

  // Of so many bytes of address space. kUnavailable E-run-shared-memory: the system gives none.
  static Result<std::unique_ptr<SharedHeap>> Make(std::size_t bytes);
  ~SharedHeap();  // after the last buffer
  SharedHeap(const SharedHeap&) = delete;
  SharedHeap& operator=(const SharedHeap&) = delete;

  // The lowest room of `bytes` > 0, because its pages are there; aligned to pages. Null where there is
  // none.
  std::shared_ptr<Buffer> Allocate(std::size_t bytes);

  // Where these bytes lie, if all of them lie in here.
  std::optional<std::uint64_t> OffsetOf(const std::byte* data, std::size_t size) const;
  int fd() const { return fd_; }

 private:
  struct Room {
    std::size_t size = 0;
    std::size_t used = 0;  // bytes of it that have pages, at the most
  };

  SharedHeap(int fd, std::byte* pages, std::size_t bytes);
  std::optional<std::uint64_t> Take(std::size_t size);
  void Free(std::uint64_t offset, std::size_t size);
  void LeaveToParent();  // in a forked child

  const int fd_;
  std::byte* const pages_;
  const std::size_t bytes_;
  std::atomic<bool> left_ = false;  // this process is a forked child of the one whose heap it is
  std::mutex mutex_;
  std::map<std::uint64_t, Room> free_;  // by offset; neighbours are joined
};

// As Buffer::Allocate, in this process's shared heap where that is worth it and there is room.
std::shared_ptr<Buffer> AllocateToShow(std::size_t bytes);

}  // namespace penstock
