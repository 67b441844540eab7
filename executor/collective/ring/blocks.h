// The blocks that ranks exchange over a network before an operation (ring_backend.h). Each rank has one; it
// holds the rank's signature and, in a small operation, its data.
//
//   Blocks blocks(4, 32768);                        // for 4 ranks, with at most 32 KB of data each
//   blocks.Clear();
//   blocks.Add(signature, data);                    // this rank's own
//   links.Send(to, Channel::kAgreement, blocks.First(1));
//   if (!blocks.AddFrom(received, 1)) ...           // another rank's
//   blocks.data(1)                                  // its data, aligned for all element types
//
// The memory does not move, so the result of First may be in flight while blocks are added.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "executor/collective/group/operation.h"

namespace penstock::collective {

class Blocks {
 public:
  Blocks(int ranks, std::size_t most_data);

  std::size_t most_data() const { return most_data_; }
  std::size_t most_bytes() const { return BytesOf(most_data_); }  // of a whole block
  void Clear() { begins_.clear(); }
  // Adds a block. At most one per rank, with at most most_data() bytes of data.
  void Add(const Signature& what, std::span<const std::byte> data);
  // Adds `count` blocks from a message that any process may have sent; `message` may be longer than the
  // blocks. Returns false if it does not begin with that many blocks.
  bool AddFrom(std::span<const std::byte> message, std::size_t count);

  std::size_t size() const { return begins_.size(); }
  std::span<const std::byte> First(std::size_t count) const;
  Signature signature(std::size_t block) const;
  std::span<const std::byte> data(std::size_t block) const;

 private:
  struct Head {
    std::uint64_t data_bytes = 0;
    Signature what;
  };
  static std::size_t BytesOf(std::size_t data_bytes);
  Head head(std::size_t block) const;

  const std::size_t most_blocks_, most_data_;
  const std::unique_ptr<std::byte[]> memory_;
  std::vector<std::size_t> begins_;  // of each block
  std::size_t end_ = 0;
};

}  // namespace penstock::collective
