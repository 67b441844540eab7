// A version of a chunk as it is sent to trainers: a copy that updates do not touch and, if messages carry
// checksums, the CRC-32C of each part in which it travels. Made once, in one pass over the chunk, and shared
// by all replies that carry it.
//
//   const auto published = Published::Copy(chunk, {.part_bytes = 4 << 20, .checksums = true}, pool);
//   published->part(1)      // a payload with its CRC
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "executor/pserver/memory/buffer_pool.h"
#include "framework/runtime/transport.h"
#include "framework/tensor/tensor.h"

namespace penstock::pserver {

class Published {
 public:
  struct Way {
    std::size_t part_bytes = 0;
    bool checksums = false;
  };
  // Copies `value`.
  static std::shared_ptr<const Published> Copy(const Tensor& value, const Way& way, BufferPool& pool);
  // For a value that never changes: shares its memory.
  static std::shared_ptr<const Published> Share(const Tensor& value, const Way& way);

  std::size_t part_count() const { return (value_.bytes() + part_bytes_ - 1) / part_bytes_; }
  Payload part(std::size_t index) const;
  const Tensor& value() const { return value_; }

 private:
  Published(const Tensor& from, Tensor to, const Way& way);

  Tensor value_;
  std::size_t part_bytes_;
  std::vector<std::uint32_t> crcs_;  // by part; empty: no checksums
};

}  // namespace penstock::pserver
