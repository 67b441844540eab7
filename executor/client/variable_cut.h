// How a variable is cut into chunks, and a chunk into the parts that travel as messages. The server decides
// both in its welcome.
//
//   cut.ChunkOf(2)                                 // {8388608, 4194304}: bytes of the variable
//   PartOf(cut.ChunkOf(2), 1, cut.part_bytes)      // the second message of that chunk
#pragma once

#include <cstddef>
#include <cstdint>

#include "framework/text/compression.h"

namespace penstock::client {

struct Extent {
  std::size_t begin = 0, size = 0;
};

struct VariableCut {
  std::size_t chunks = 0, chunk_rows = 0, bytes_per_chunk = 0, bytes = 0;  // 0: not known yet
  std::size_t part_bytes = 1;                                              // most bytes of a part
  Compression compression = {};                                            // of a pushed gradient
  bool rows = false;         // a pushed gradient is selected rows, of any number
  std::uint32_t shards = 0;  // of a table that is sharded by id; of others 1. A gradient has as many chunks
  std::size_t row_bytes = 0;

  Extent ChunkOf(std::uint32_t chunk) const;
  // The same chunk in a pushed gradient of `pushed_bytes`: in its compressed form; all of it if it is rows of
  // one shard.
  Extent PushedChunkOf(std::uint32_t chunk, std::size_t pushed_bytes) const;
  std::size_t parts() const;  // of a chunk; the last chunk may have fewer
};

std::size_t PartsOf(std::size_t bytes, std::size_t part_bytes);
Extent PartOf(Extent whole, std::uint32_t part, std::size_t part_bytes);

}  // namespace penstock::client
