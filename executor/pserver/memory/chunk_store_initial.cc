// Initial values that trainers set.
#include <cstring>

#include "executor/pserver/memory/chunk_store.h"

namespace penstock::pserver {
namespace {

// Whether the concatenated parts equal the bytes from `at` on.
bool Same(const std::vector<Payload>& parts, const std::byte* at) {
  for (const Payload& part : parts) {
    for (const Bytes& piece : part.pieces()) {
      if (std::memcmp(piece.data, at, piece.size) != 0) return false;
      at += piece.size;
    }
  }
  return true;
}

}  // namespace

Status ChunkStore::SetInitial(const MergeAction& merge) {
  Chunk& chunk = At(merge.param, merge.chunk);
  const Param& param = params_[static_cast<std::size_t>(merge.param)];
  if (!chunk.initial_of.has_value()) {
    std::byte* at = chunk.param.raw();
    for (const Payload& part : merge.parts) {
      part.CopyTo(at);
      at += part.size();
    }
    chunk.policy->Begin(chunk.param);
    chunk.initial_of = merge.trainer;
    chunk.published.reset();  // a copy of the previous value
    return OkStatus();
  }
  if (Same(merge.parts, chunk.param.raw())) return OkStatus();
  const Dim begin = merge.chunk * param.chunk_rows;
  const Dim rows = chunk.param.shape().rank() == 0 ? 1 : chunk.param.shape()[0];
  return FailedPrecondition("E-load-differs", "trainers ", *chunk.initial_of, " and ", merge.trainer,
                            " set different values of ", param.piece.name,
                            " before their first step, in rows [", begin, ", ", begin + rows, ")")
      .With("load the same values on every trainer, after its startup program and before its first step");
}

}  // namespace penstock::pserver
