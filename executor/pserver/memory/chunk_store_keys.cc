// Keys of a key-value store: params that are added while the job runs. A merged gradient replaces the value,
// or an optimizer, which may change, updates it.
#include <cstring>
#include <new>
#include <utility>

#include "executor/kvstore/merge_rows.h"
#include "executor/pserver/memory/chunk_store.h"
#include "executor/pserver/memory/gradient_sum.h"
#include "executor/pserver/memory/key_updater.h"
#include "executor/pserver/memory/memory_left.h"
#include "framework/tensor/chunk.h"

namespace penstock::pserver {
namespace {

template <typename T>
void AddElements(const Tensor& addend, Tensor& sum) {
  T* const to = sum.Data<T>();
  const T* const from = addend.Span<T>().data();
  for (std::int64_t i = 0; i < sum.count(); ++i) to[i] = static_cast<T>(to[i] + from[i]);
}

// Of types that AddGradient does not add.
void AddTensor(const Tensor& addend, Tensor& sum) {
  switch (sum.dtype()) {
    case DType::kInt8:
      return AddElements<std::int8_t>(addend, sum);
    case DType::kUInt8:
      return AddElements<std::uint8_t>(addend, sum);
    case DType::kInt16:
      return AddElements<std::int16_t>(addend, sum);
    case DType::kInt32:
      return AddElements<std::int32_t>(addend, sum);
    default:
      return AddElements<std::int64_t>(addend, sum);
  }
}

}  // namespace

Result<int> ChunkStore::AddKey(const NewKey& key) {
  if (key.table != nullptr) return AddKeyTable(key);
  const protocol::ContractPiece& piece = key.piece;
  const std::size_t bytes = static_cast<std::size_t>(piece.shape.Count()) * SizeOf(piece.dtype);
  const auto no_memory = [&] {
    return FailedPrecondition("E-kv-memory", "pserver ", facts_.address, " has no memory for key ",
                              Quote(piece.name), " of ", bytes, " bytes");
  };
  if (!MemoryLeft(kMemoryToServe + 2 * bytes)) return no_memory();
  Tensor whole;
  try {
    whole = Tensor(piece.dtype, piece.shape);
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
  std::memset(whole.raw(), 0, whole.bytes());
  roles::ServedParam served{.param = piece, .grads = {}};
  served.rows = piece.rows;
  const int addends = key.turns ? 1 : facts_.trainers;
  for (int worker = 0; worker < addends; ++worker)
    served.grads.push_back(StrCat(piece.name, "@GRAD.", worker));
  Param& param = NewParam(served);
  param.is_key = true;
  param.turns = key.turns;
  param.whole = key.whole;
  if (!piece.rows && CanAdd(piece.dtype))
    param.merge = MergePlan{.output = piece.name + "@GRAD", .factor = {}, .replaces = {}};
  const Dim rows = piece.shape[0];
  const Dim row_bytes = piece.shape.RowWidth() * static_cast<Dim>(SizeOf(piece.dtype));
  param.chunk_rows = piece.rows || key.whole ? rows : ChunkRows(rows, row_bytes, kChunkBytes);
  for (Dim begin = 0; begin < rows; begin += param.chunk_rows) {
    auto chunk = std::make_unique<Chunk>();
    chunk->scope = std::make_unique<Scope>();
    chunk->param =
        param.chunk_rows == rows ? whole : whole.Rows(begin, std::min(rows, begin + param.chunk_rows));
    AddGradients(served, param.merge, *chunk);
    param.chunks.push_back(std::move(chunk));
  }
  return static_cast<int>(params_.size()) - 1;
}

Status ChunkStore::OptimizerFits(const kvstore::KeyOptimizer& optimizer, int number) const {
  const Param& param = params_[static_cast<std::size_t>(number)];
  if (!param.whole && kvstore::NeedsWhole(optimizer)) {
    return InvalidArgument("E-kv-optimizer-split", "key ", Quote(param.piece.name),
                           " lies in pieces, and an update by ", optimizer.name, " needs the whole key");
  }
  return kvstore::UpdateProgram(optimizer,
                                KeyUpdater::FactsOf(param.piece, param.chunks.front()->param.shape()))
      .status();
}

Status ChunkStore::SetUpdate(std::shared_ptr<const kvstore::KeyOptimizer> optimizer, ChunkId at,
                             bool keeps_state, BlockRunner& runner) {
  Chunk& chunk = At(at.param, at.chunk);
  CopyKey(chunk);
  const std::shared_ptr<KeyUpdater> before = std::exchange(chunk.updater, nullptr);
  if (before == nullptr || !keeps_state) chunk.updates_since = chunk.version;
  chunk.largest = 0;
  if (optimizer == nullptr) return OkStatus();
  // A value that was replaced is shared with those to whom it was sent; an update changes it in place.
  chunk.param = chunk.param.Clone();
  const Param& param = params_[static_cast<std::size_t>(at.param)];
  PENSTOCK_ASSIGN_OR_RETURN(chunk.updater,
                            KeyUpdater::Make(std::move(optimizer), param.piece, chunk.param.shape(), runner));
  if (before != nullptr && keeps_state) chunk.updater->TakeState(*before);
  return OkStatus();
}

void ChunkStore::CopyKey(Chunk& chunk) {
  const std::shared_ptr<KeyCopy> copy = std::exchange(chunk.key_cut, nullptr);
  if (copy == nullptr) return;
  copy->value = chunk.param.Clone();
  copy->rounds = chunk.version;
  if (chunk.updater == nullptr) return;
  copy->optimizer = chunk.updater->optimizer();
  copy->since = chunk.version - chunk.updates_since;
  copy->states = chunk.updater->CopyStates();
}

Status ChunkStore::ContinueKey(ChunkId at, const KeyCopy& from, BlockRunner& runner) {
  Chunk& chunk = At(at.param, at.chunk);
  chunk.param = from.value.Clone();
  chunk.version = from.rounds;
  chunk.updates_since = from.rounds - from.since;
  if (from.optimizer == nullptr) return OkStatus();
  const protocol::ContractPiece& piece = params_[static_cast<std::size_t>(at.param)].piece;
  PENSTOCK_ASSIGN_OR_RETURN(chunk.updater,
                            KeyUpdater::Make(from.optimizer, piece, chunk.param.shape(), runner));
  return chunk.updater->ContinueStates(from.states);
}

void ChunkStore::DropKey(ChunkId at) {
  Chunk& chunk = At(at.param, at.chunk);
  CopyKey(chunk);
  chunk.updater.reset();
  chunk.published.reset();
  chunk.kept.reset();
  chunk.first.reset();
  chunk.param = Tensor(chunk.param.dtype(), chunk.param.shape().WithRows(0));
  if (chunk.sum != nullptr) chunk.sum->As<Tensor>() = Tensor();
  for (const auto& grad : chunk.grads) *grad = Variable();
}

// All workers' rows, in their order; each row once, ascending.
SelectedRows ChunkStore::SumOfRows(const Param& param, const Chunk& chunk) {
  std::vector<SelectedRows> all;  // shares the memory
  for (const auto& grad : chunk.grads) all.push_back(grad->As<SelectedRows>());
  return kvstore::MergedRows(all, param.piece.dtype);
}

Status ChunkStore::UpdateKey(const Param& param, Chunk& chunk, BlockRunner& runner) {
  if (chunk.updater == nullptr) return ReplaceKey(param, chunk);
  Variable gradient;
  if (param.rows) {
    gradient.As<SelectedRows>() = SumOfRows(param, chunk);
  } else {
    gradient.As<Tensor>() = std::exchange(chunk.sum->As<Tensor>(), Tensor());
  }
  const std::uint64_t count = chunk.version + 1 - chunk.updates_since;
  const std::uint64_t largest = std::max(count, std::exchange(chunk.largest, 0));
  return chunk.updater->Update(std::move(gradient), {.count = count, .largest = largest}, chunk.param,
                               runner);
}

// The value becomes the sum; of a table, the rows that were not pushed become zero. It gets new memory, so
// the last one may be on its way to workers.
Status ChunkStore::ReplaceKey(const Param& param, Chunk& chunk) {
  if (!param.rows && chunk.sum != nullptr) {
    chunk.param = std::exchange(chunk.sum->As<Tensor>(), Tensor());
    return OkStatus();
  }
  if (!param.rows) {
    Tensor sum = chunk.grads.front()->As<Tensor>().Clone();
    for (std::size_t i = 1; i < chunk.grads.size(); ++i) AddTensor(chunk.grads[i]->As<Tensor>(), sum);
    chunk.param = std::move(sum);
    return OkStatus();
  }
  const SelectedRows merged = SumOfRows(param, chunk);
  Tensor value(param.piece.dtype, chunk.param.shape());
  std::memset(value.raw(), 0, value.bytes());
  const std::size_t row = RowBytes(param.piece);
  for (std::size_t i = 0; i < merged.rows.size(); ++i)
    std::memcpy(value.raw() + static_cast<std::size_t>(merged.rows[i]) * row, merged.value.raw() + i * row,
                row);
  chunk.param = std::move(value);
  return OkStatus();
}

}  // namespace penstock::pserver
