// The shard of a row of a table that is sharded by id. A server cuts its rows of such a table into shards,
// which are chunks: the ids of a message are of one shard. Neither initial values nor updates of a row depend
// on its shard.
//
//   ShardOf(4711, 4)       // 0 to 3
#pragma once

#include <cstdint>

namespace penstock::protocol {

inline constexpr std::uint32_t kShardsMax = 1024;

// `shards`: from 1 to kShardsMax. Uses other bits than the index of a shard (executor/table/index.h), which
// would otherwise be filled in one place, and than the choice of the server, the id modulo their number.
inline std::uint32_t ShardOf(std::int64_t id, std::uint32_t shards) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
  auto x = static_cast<std::uint64_t>(id);
  x = (x ^ (x >> 32)) * kOdd;
  return static_cast<std::uint32_t>(((x >> 32) * shards) >> 32);
}

}  // namespace penstock::protocol
