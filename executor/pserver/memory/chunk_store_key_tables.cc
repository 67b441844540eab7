// Keys of a key-value store that are tables of any ids: their shards, and the updates of their rows.
#include <algorithm>
#include <new>
#include <utility>

#include "executor/kvstore/key_table.h"
#include "executor/protocol/row_shards.h"
#include "executor/pserver/memory/chunk_store.h"

namespace penstock::pserver {
namespace {

// The number of rows is not known, and a push sends a message to each shard.
constexpr int kShardsOfKey = 8;

}  // namespace

// As TableShards says: a budget counts all rows of the server, so such a table has one shard.
Result<int> ChunkStore::AddKeyTable(const NewKey& key) {
  const protocol::ContractPiece& piece = key.piece;
  const int by_threads = std::clamp(shards_.most, 1, kShardsOfKey);
  const int wanted = key.table->spec().policy.budget_mb > 0 ? 1 : shards_.exactly.value_or(by_threads);
  const int shards = std::clamp(wanted, 1, static_cast<int>(protocol::kShardsMax));
  roles::ServedParam served{.param = piece, .grads = {}, .rows = true};
  const int addends = key.turns ? 1 : facts_.trainers;
  for (int worker = 0; worker < addends; ++worker)
    served.grads.push_back(StrCat(piece.name, "@GRAD.", worker));
  std::vector<std::unique_ptr<Chunk>> chunks;
  for (int shard = 0; shard < shards; ++shard) {
    Chunk& chunk = *chunks.emplace_back(std::make_unique<Chunk>());
    chunk.scope = std::make_unique<Scope>();
    AddGradients(served, {}, chunk);
    PENSTOCK_ASSIGN_OR_RETURN(table::RowTable rows, key.table->MakeRows(*chunk.scope));
    chunk.table = std::make_unique<table::RowTable>(std::move(rows));
  }
  Param& param = NewParam(served);
  param.is_key = param.by_id = true;
  param.turns = key.turns;
  param.whole = key.whole;
  param.key_table = key.table;
  param.chunk_rows = piece.shape[0];
  param.chunks = std::move(chunks);
  return static_cast<int>(params_.size()) - 1;
}

Status ChunkStore::UpdateKeyTable(const Param& param, Chunk& chunk) const {
  CopyBefore(chunk);
  std::vector<SelectedRows*> gradients;
  for (const auto& grad : chunk.grads) gradients.push_back(&grad->As<SelectedRows>());
  try {
    param.key_table->Update(gradients, chunk.version + 1, *chunk.table);
  } catch (const std::bad_alloc&) {
    return NoMemoryFor(param, chunk);
  }
  return OkStatus();
}

}  // namespace penstock::pserver
