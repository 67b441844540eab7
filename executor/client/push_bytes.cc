#include "executor/client/push_bytes.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "executor/protocol/compressed.h"
#include "framework/base/crc32c.h"

namespace penstock::client {
namespace {

Bytes Compressed(const VariableCut& cut, const Bytes& gradient, float* residual) {
  const Extent last = cut.PushedChunkOf(static_cast<std::uint32_t>(cut.chunks - 1), 0);
  const std::size_t size = last.begin + last.size;
  auto bytes = std::make_shared_for_overwrite<std::byte[]>(size);
  const auto* const values = reinterpret_cast<const float*>(gradient.data);
  for (std::uint32_t chunk = 0; chunk < cut.chunks; ++chunk) {
    const Extent from = cut.ChunkOf(chunk);
    const std::size_t begin = from.begin / sizeof(float), count = from.size / sizeof(float);
    const std::span<float> left =
        residual == nullptr ? std::span<float>() : std::span(residual + begin, count);
    protocol::Compress(cut.compression, {values + begin, count}, left,
                       bytes.get() + cut.PushedChunkOf(chunk, 0).begin);
  }
  const std::byte* const data = bytes.get();
  return {std::move(bytes), data, size};
}

}  // namespace

std::size_t PushBytes::PartsOf(const VariableCut& cut, std::uint32_t chunk) const {
  return std::max<std::size_t>(client::PartsOf(cut.PushedChunkOf(chunk, bytes.size).size, cut.part_bytes), 1);
}

Payload PushBytes::PartOf(const VariableCut& cut, std::uint32_t chunk, std::uint32_t part) const {
  const Extent extent = client::PartOf(cut.PushedChunkOf(chunk, bytes.size), part, cut.part_bytes);
  Payload payload(Bytes{bytes.owner, bytes.data + extent.begin, extent.size});
  // All chunks but the last have as many parts as the first.
  if (!checksums.empty()) payload.set_crc32c(checksums[chunk * PartsOf(cut, 0) + part]);
  return payload;
}

PushBytes MakePushBytes(const VariableCut& cut, Bytes gradient, float* residual, bool checksums) {
  PushBytes made{.bytes = std::move(gradient)};
  if (!cut.compression.none()) {
    made.plain_bytes = made.bytes.size;
    made.bytes = Compressed(cut, made.bytes, residual);
  }
  if (!checksums) return made;
  for (std::uint32_t chunk = 0; chunk < cut.chunks; ++chunk) {
    const Extent whole = cut.PushedChunkOf(chunk, made.bytes.size);
    for (std::uint32_t part = 0; part < made.PartsOf(cut, chunk); ++part) {
      const Extent extent = PartOf(whole, part, cut.part_bytes);
      made.checksums.push_back(Crc32c(0, made.bytes.data + extent.begin, extent.size));
    }
  }
  return made;
}

}  // namespace penstock::client
