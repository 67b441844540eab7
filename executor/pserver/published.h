// A version of a chunk as trainers get it: a copy that no update touches, and the CRC-32C of each part that
// it travels in. Made once, in one pass over the chunk, and shared by all replies that carry it.
//
//   const Published published = Publish(chunk, 4 << 20, pool);
//   published.part(1)      // a payload that knows its CRC
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "executor/pserver/buffer_pool.h"
#include "framework/runtime/transport.h"
#include "framework/tensor/tensor.h"

namespace penstock::pserver {

class Published {
 public:
  // Copies `value`.
  static std::shared_ptr<const Published> Copy(const Tensor& value, std::size_t part_bytes, BufferPool& pool);
  // Of what stays as it is forever: shares its memory.
  static std::shared_ptr<const Published> Share(const Tensor& value, std::size_t part_bytes);

  std::size_t part_count() const { return crcs_.size(); }
  Payload part(std::size_t index) const;

 private:
  Published(const Tensor& from, Tensor to, std::size_t part_bytes);

  Tensor value_;
  std::size_t part_bytes_;
  std::vector<std::uint32_t> crcs_;  // by part
};

}  // namespace penstock::pserver
