#include "executor/client/push_bytes.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "executor/client/row_order.h"
#include "executor/protocol/compressed.h"
#include "framework/base/crc32c.h"
#include "framework/tensor/shared_heap.h"

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

// All ids, then all values, shard after shard.
PushBytes Copied(std::span<const std::int64_t> ids, const std::byte* values, std::size_t row_bytes,
                 std::uint32_t shards) {
  PushBytes made;
  const std::size_t row = sizeof(std::int64_t) + row_bytes, size = ids.size() * row;
  std::byte* to = nullptr;
  if (size > 0) {
    std::shared_ptr<Buffer> buffer = AllocateToShow(size);
    to = buffer->data();
    made.bytes = {std::move(buffer), to, size};
  }
  if (shards <= 1) {
    if (size == 0) return made;
    std::memcpy(to, ids.data(), ids.size_bytes());
    std::memcpy(to + ids.size_bytes(), values, ids.size() * row_bytes);
    return made;
  }
  const RowOrder order(ids, shards);
  for (std::uint32_t shard = 0; shard < shards; ++shard) {
    made.chunk_begins.push_back(order.begin(shard) * row);
    const auto of_shard =
        order.places().subspan(order.begin(shard), order.begin(shard + 1) - order.begin(shard));
    for (const std::size_t place : of_shard) {
      std::memcpy(to, &ids[place], sizeof(std::int64_t));
      to += sizeof(std::int64_t);
    }
    for (const std::size_t place : of_shard) {
      std::memcpy(to, values + place * row_bytes, row_bytes);
      to += row_bytes;
    }
  }
  made.chunk_begins.push_back(size);
  return made;
}

}  // namespace

Extent PushBytes::ChunkOf(const VariableCut& cut, std::uint32_t chunk) const {
  if (chunk_begins.empty()) return cut.PushedChunkOf(chunk, bytes.size);
  return {chunk_begins[chunk], chunk_begins[chunk + std::size_t{1}] - chunk_begins[chunk]};
}

std::uint64_t PushBytes::RowsOf(const VariableCut& cut, std::uint32_t chunk) const {
  return cut.rows ? ChunkOf(cut, chunk).size / (sizeof(std::int64_t) + cut.row_bytes) : 0;
}

std::size_t PushBytes::PartsOf(const VariableCut& cut, std::uint32_t chunk) const {
  return std::max<std::size_t>(client::PartsOf(ChunkOf(cut, chunk).size, cut.part_bytes), 1);
}

Payload PushBytes::PartOf(const VariableCut& cut, std::uint32_t chunk, std::uint32_t part) const {
  const Extent extent = client::PartOf(ChunkOf(cut, chunk), part, cut.part_bytes);
  Payload payload(Bytes{bytes.owner, bytes.data + extent.begin, extent.size});
  if (checksums.empty()) return payload;
  // Without rows, all chunks but the last have as many parts as the first.
  std::size_t before = chunk_begins.empty() ? chunk * PartsOf(cut, 0) : 0;
  for (std::uint32_t shard = 0; !chunk_begins.empty() && shard < chunk; ++shard)
    before += PartsOf(cut, shard);
  payload.set_crc32c(checksums[before + part]);
  return payload;
}

PushBytes MakePushBytes(const VariableCut& cut, Bytes gradient, float* residual, bool checksums) {
  PushBytes made{.bytes = std::move(gradient)};
  if (!cut.compression.none()) {
    made.plain_bytes = made.bytes.size;
    made.bytes = Compressed(cut, made.bytes, residual);
  }
  if (checksums) AddChecksums(cut, made);
  return made;
}

void AddChecksums(const VariableCut& cut, PushBytes& made) {
  for (std::uint32_t chunk = 0; chunk < cut.chunks; ++chunk) {
    const Extent whole = made.ChunkOf(cut, chunk);
    for (std::uint32_t part = 0; part < made.PartsOf(cut, chunk); ++part) {
      const Extent extent = PartOf(whole, part, cut.part_bytes);
      made.checksums.push_back(Crc32c(0, made.bytes.data + extent.begin, extent.size));
    }
  }
}

PushBytes CopyOfRows(const SelectedRows& rows, std::uint32_t shards) {
  const std::size_t row_bytes = rows.rows.empty() ? 0 : rows.value.bytes() / rows.rows.size();
  return Copied(rows.rows, row_bytes == 0 ? nullptr : rows.value.raw(), row_bytes, shards);
}

PushBytes SortRows(const VariableCut& cut, const PushBytes& rows) {
  const std::size_t count = rows.bytes.size / (sizeof(std::int64_t) + cut.row_bytes);
  const auto* const ids = reinterpret_cast<const std::int64_t*>(rows.bytes.data);
  return Copied({ids, count}, rows.bytes.data + count * sizeof(std::int64_t), cut.row_bytes, cut.shards);
}

}  // namespace penstock::client
