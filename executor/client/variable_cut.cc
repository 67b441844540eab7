#include "executor/client/variable_cut.h"

#include <algorithm>

namespace penstock::client {

Extent VariableCut::ChunkOf(std::uint32_t chunk) const {
  const std::size_t begin = chunk * bytes_per_chunk;
  return {begin, std::min(bytes_per_chunk, bytes - begin)};
}

// All chunks but the last have the same number of elements, so their compressed forms have the same size.
Extent VariableCut::PushedChunkOf(std::uint32_t chunk, std::size_t pushed_bytes) const {
  if (rows) return {0, pushed_bytes};
  const Extent own = ChunkOf(chunk);
  if (compression.none()) return own;
  const auto bytes_of = [&](std::size_t plain) {
    return static_cast<std::size_t>(compression.Bytes(static_cast<std::int64_t>(plain / sizeof(float))));
  };
  return {chunk * bytes_of(std::min(bytes_per_chunk, bytes)), bytes_of(own.size)};
}

std::size_t VariableCut::parts() const { return PartsOf(bytes_per_chunk, part_bytes); }

std::size_t PartsOf(std::size_t bytes, std::size_t part_bytes) {
  return (bytes + part_bytes - 1) / part_bytes;
}

Extent PartOf(Extent whole, std::uint32_t part, std::size_t part_bytes) {
  const std::size_t at = std::size_t{part} * part_bytes;
  return {whole.begin + at, std::min(part_bytes, whole.size - at)};
}

}  // namespace penstock::client
