#include "executor/pserver/memory/published.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "framework/base/crc32c.h"
#include "framework/runtime/compute_pool.h"

namespace penstock::pserver {
namespace {

constexpr std::size_t kCopyBlockBytes = 65536;  // fits the L2 cache, so the checksum reads no main memory

std::uint32_t CopyAndSum(const std::byte* from, std::size_t size, std::byte* to) {
  std::uint32_t crc = 0;
  for (std::size_t begin = 0; begin < size; begin += kCopyBlockBytes) {
    const std::size_t n = std::min(kCopyBlockBytes, size - begin);
    if (to != from) std::memcpy(to + begin, from + begin, n);
    crc = Crc32c(crc, to + begin, n);
  }
  return crc;
}

}  // namespace

Published::Published(const Tensor& from, Tensor to, const Way& way)
    : value_(std::move(to)), part_bytes_(way.part_bytes) {
  if (!way.checksums) {
    if (value_.raw() != from.raw()) value_.CopyFrom(from);
    return;
  }
  if (from.bytes() == 0) return;
  constexpr double kByteNs = 0.2;
  crcs_.resize(1 + (from.bytes() - 1) / part_bytes_);
  const auto largest = static_cast<double>(std::min(part_bytes_, from.bytes()));
  ParallelFor(static_cast<std::int64_t>(crcs_.size()), kByteNs * largest, 1,
              [&](std::int64_t first, std::int64_t end) {
                for (auto part = static_cast<std::size_t>(first); part < static_cast<std::size_t>(end);
                     ++part) {
                  const std::size_t begin = part * part_bytes_;
                  const std::size_t size = std::min(part_bytes_, from.bytes() - begin);
                  crcs_[part] = CopyAndSum(from.raw() + begin, size, value_.raw() + begin);
                }
              });
}

std::shared_ptr<const Published> Published::Copy(const Tensor& value, const Way& way, BufferPool& pool) {
  return std::shared_ptr<const Published>(new Published(value, pool.Make(value.dtype(), value.shape()), way));
}

std::shared_ptr<const Published> Published::Share(const Tensor& value, const Way& way) {
  return std::shared_ptr<const Published>(new Published(value, value, way));
}

Payload Published::part(std::size_t index) const {
  const std::size_t begin = index * part_bytes_;
  Payload part = Payload::Of(value_, begin, std::min(part_bytes_, value_.bytes() - begin));
  if (!crcs_.empty()) part.set_crc32c(crcs_[index]);
  return part;
}

}  // namespace penstock::pserver
