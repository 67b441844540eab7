// The shared memory of one direction of a connection between processes of one host: the sender copies a body
// into it, the receiver reads it where it is and says when it needs it no more.
//
//   PENSTOCK_ASSIGN_OR_RETURN(SendArena arena, SendArena::Make());  // the sender; arena.fd() is passed
//   const std::optional<std::uint64_t> at = arena.Allocate(body.size());
//   body.CopyTo(arena.At(*at));
//   ...
//   PENSTOCK_ASSIGN_OR_RETURN(ReceiveArena arena, ReceiveArena::Map(fd));             // the receiver
//   PENSTOCK_ASSIGN_OR_RETURN(Bytes body, arena.Borrow(at, size, [] { ... tell the sender to Free(at) }));
//
// The memory has no name (memfd), so it ends with the last process that maps it, however that ends. Its size
// is sealed: nobody can take pages away from under a reader. Pages are there from their first use on. Not
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "executor/transport/descriptor.h"
#include "framework/base/status.h"
#include "framework/runtime/transport.h"

namespace penstock::transport {

inline constexpr std::size_t kArenaBytes = std::size_t{256} << 20;  // of address space
// What an arena that is empty keeps of the pages that it has used.
inline constexpr std::size_t kArenaKeptBytes = std::size_t{16} << 20;

// Addresses of shared memory, unmapped with the last owner.
using SharedPages = std::shared_ptr<std::byte>;

class SendArena {
 public:
  // kUnavailable E-rpc-shared-memory: the system gives none.
  static Result<SendArena> Make(std::size_t bytes = kArenaBytes);

  int fd() const { return fd_.get(); }
  // The lowest block of `size` > 0 bytes, because its pages are there; nothing where none is free.
  std::optional<std::uint64_t> Allocate(std::size_t size);
  std::byte* At(std::uint64_t offset) const { return pages_.get() + offset; }
  // Whether there was such a block: a receiver may say anything.
  bool Free(std::uint64_t offset);

 private:
  SendArena(Descriptor fd, SharedPages pages, std::size_t bytes);

  Descriptor fd_;
  SharedPages pages_;
  std::size_t used_to_ = 0;                    // pages beyond were not used, or given back
  std::map<std::uint64_t, std::size_t> free_;  // offset and size; neighbours are joined
  std::map<std::uint64_t, std::size_t> used_;
};

class ReceiveArena {
 public:
  // kDataLoss E-rpc-frame: that is no memory, or its size could change while it is read.
  // kUnavailable E-rpc-shared-memory: it cannot be mapped.
  static Result<ReceiveArena> Map(const Descriptor& fd);

  // Bytes of the sender; `done` is called once, from any thread, when their last owner is gone.
  // kDataLoss E-rpc-frame: they are not in the arena.
  Result<Bytes> Borrow(std::uint64_t offset, std::size_t size, std::function<void()> done) const;

 private:
  ReceiveArena(SharedPages pages, std::size_t bytes) : pages_(std::move(pages)), bytes_(bytes) {}

  SharedPages pages_;
  std::size_t bytes_;
};

}  // namespace penstock::transport
