// The bytes of a gradient as they travel: compressed if the variable says so, with a checksum of each part.
// Making them reads the whole gradient, so a link does it without its lock.
//
//   PushBytes bytes = MakePushBytes(cut, {.bytes = gradient, .residual = residual}, true);
//   bytes.PartOf(cut, chunk, part)               // a payload that carries its checksum
#pragma once

#include <cstdint>
#include <vector>

#include "executor/client/variable_cut.h"
#include "framework/runtime/transport.h"
#include "framework/tensor/variable.h"

namespace penstock::client {

struct PushBytes {
  Bytes bytes;                                 // of the tensor; of rows: all ids, then all values, by shard
  std::vector<std::uint32_t> checksums = {};   // by part, chunk after chunk; empty: none were made
  std::size_t plain_bytes = 0;                 // before compression; 0: not compressed
  std::vector<std::size_t> chunk_begins = {};  // of rows in several shards, and the size; else empty

  // The parts of a chunk, at least one: a gradient without rows is one empty part.
  Extent ChunkOf(const VariableCut& cut, std::uint32_t chunk) const;
  std::uint64_t RowsOf(const VariableCut& cut, std::uint32_t chunk) const;  // 0 if it is not rows
  std::size_t PartsOf(const VariableCut& cut, std::uint32_t chunk) const;
  Payload PartOf(const VariableCut& cut, std::uint32_t chunk, std::uint32_t part) const;
};

// Compresses chunk by chunk, into memory of its own. `residual` (null if there is none) has as many floats as
// the gradient; calls must come in the order of the steps, because each step's residual builds on that of the
// step before.
PushBytes MakePushBytes(const VariableCut& cut, Bytes gradient, float* residual, bool checksums);
// A copy of rows, in memory that a receiver on this host may read. `shards` of 0: as they are.
PushBytes CopyOfRows(const SelectedRows& rows, std::uint32_t shards);
// Sorts rows that were copied as they are.
PushBytes SortRows(const VariableCut& cut, const PushBytes& rows);
void AddChecksums(const VariableCut& cut, PushBytes& made);

}  // namespace penstock::client
