#include "executor/client/row_order.h"

#include <algorithm>
#include <cstring>

#include "executor/protocol/row_shards.h"

namespace penstock::client {

RowOrder::RowOrder(std::span<const std::int64_t> ids, std::uint32_t shards)
    : begins_(shards + std::size_t{1}, 0), places_(ids.size()) {
  std::vector<std::uint16_t> shard_of(ids.size());
  static_assert(protocol::kShardsMax <= std::size_t{1} << 16);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    shard_of[i] = static_cast<std::uint16_t>(protocol::ShardOf(ids[i], shards));
    ++begins_[shard_of[i] + std::size_t{1}];
  }
  for (std::uint32_t shard = 0; shard < shards; ++shard) begins_[shard + 1] += begins_[shard];
  std::vector<std::size_t> next(begins_.begin(), begins_.end() - 1);
  for (std::size_t i = 0; i < ids.size(); ++i) places_[next[shard_of[i]]++] = i;
}

void ScatterRows(const Payload& rows, std::size_t begin, std::size_t row_bytes,
                 std::span<const std::size_t> places, std::byte* to) {
  if (rows.size() == 0) return;
  std::size_t row = begin / row_bytes, done = begin % row_bytes;  // a part may begin within a row
  for (const Bytes& piece : rows.pieces()) {
    const std::byte* from = piece.data;
    for (std::size_t left = piece.size; left > 0;) {
      const std::size_t size = std::min(left, row_bytes - done);
      std::memcpy(to + places[row] * row_bytes + done, from, size);
      from += size;
      left -= size;
      done += size;
      if (done < row_bytes) break;  // the next piece has the rest
      done = 0;
      ++row;
    }
  }
}

}  // namespace penstock::client
