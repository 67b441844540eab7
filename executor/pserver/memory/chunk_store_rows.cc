// Gradients of rows, requests for rows, and saves of tables.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <span>
#include <utility>

#include "executor/protocol/row_shards.h"
#include "executor/pserver/memory/chunk_store.h"
#include "framework/base/crc32c.h"
#include "framework/tensor/shared_heap.h"

namespace penstock::pserver {
namespace {

// Values of rows that are copied between two other jobs of the table.
constexpr std::size_t kSavedBytes = std::size_t{16} << 20, kCutBytes = std::size_t{2} << 20;

// Copies `size` bytes of the concatenated parts, from `begin` on.
void CopyRange(const std::vector<Payload>& parts, std::size_t begin, std::size_t size, std::byte* to) {
  for (const Payload& part : parts) {
    for (const Bytes& piece : part.pieces()) {
      if (begin >= piece.size) {
        begin -= piece.size;
        continue;
      }
      const std::size_t here = std::min(size, piece.size - begin);
      if (here == 0) return;
      std::memcpy(to, piece.data + begin, here);
      to += here;
      size -= here;
      begin = 0;
    }
  }
}

// In memory that a trainer on this host may read in place.
Tensor MadeToShow(DType type, const Shape& shape) {
  const std::size_t bytes = static_cast<std::size_t>(shape.Count()) * SizeOf(type);
  return bytes == 0 ? Tensor(type, shape) : Tensor(type, shape, AllocateToShow(bytes), 0);
}

Status NoSuchRow(int trainer, const char* did, std::int64_t row, const protocol::ContractPiece& piece) {
  return InvalidArgument("E-rpc-row", "trainer ", trainer, " ", did, " row ", row, " of ", piece.name,
                         ", which has ", piece.shape[0]);
}

// Another shard would have the row too, or lacks it.
Status RequireShard(int trainer, const char* did, std::span<const std::int64_t> ids, int shard,
                    std::size_t shards, const protocol::ContractPiece& piece) {
  if (shards <= 1) return OkStatus();
  const auto of_another = std::ranges::find_if(ids, [&](std::int64_t id) {
    return protocol::ShardOf(id, static_cast<std::uint32_t>(shards)) != static_cast<std::uint32_t>(shard);
  });
  if (of_another == ids.end()) return OkStatus();
  return InvalidArgument("E-rpc-row", "trainer ", trainer, " ", did, " row ", *of_another, " of ", piece.name,
                         " in shard ", shard, " of ", shards, ", which does not have it");
}

// The tensors of a table's state file; none without state.
NamedTensors StateOfRows(const std::string& table, TableCopy& copy) {
  if (copy.state.empty()) return {};
  Tensor ids(DType::kInt64, {static_cast<Dim>(copy.rows.rows.size())});
  std::copy(copy.rows.rows.begin(), copy.rows.rows.end(), ids.Data<std::int64_t>());
  Tensor checksum(DType::kInt64, {1});
  checksum.Data<std::int64_t>()[0] = Crc32c(0, copy.rows.value.raw(), copy.rows.value.bytes());
  NamedTensors state = {{table, std::move(ids)}, {"crc32c", std::move(checksum)}};
  std::move(copy.state.begin(), copy.state.end(), std::back_inserter(state));
  return state;
}

}  // namespace

// The parts hold all ids, then all values. The state machine has checked that their size matches
// `merge.rows`.
Status ChunkStore::MergeRows(const MergeAction& merge, SelectedRows& gradient) const {
  const Param& param = params_[static_cast<std::size_t>(merge.param)];
  const protocol::ContractPiece& piece = param.piece;
  const std::size_t id_bytes = merge.rows * sizeof(std::int64_t);
  gradient.height = piece.shape[0];
  gradient.rows.resize(merge.rows);
  gradient.value.Reset(piece.dtype, piece.shape.WithRows(static_cast<Dim>(merge.rows)));
  if (merge.rows == 0) return OkStatus();
  CopyRange(merge.parts, 0, id_bytes, reinterpret_cast<std::byte*>(gradient.rows.data()));
  CopyRange(merge.parts, id_bytes, gradient.value.bytes(), gradient.value.raw());
  if (param.by_id)
    return RequireShard(merge.trainer, "sent a gradient of", gradient.rows, merge.chunk, param.chunks.size(),
                        piece);
  const auto outside =
      std::ranges::find_if(gradient.rows, [&](std::int64_t row) { return row < 0 || row >= piece.shape[0]; });
  if (outside == gradient.rows.end()) return OkStatus();
  return NoSuchRow(merge.trainer, "sent a gradient of", *outside, piece);
}

// The block divides the sum by the number of all trainers, and a mean of fewer gradients is due.
void ChunkStore::ScaleRows(const Param& param, const Chunk& chunk) const {
  const double factor = static_cast<double>(facts_.trainers) / chunk.mean_of;
  const auto scale = [&]<typename T>(std::span<T> values) {
    for (T& value : values) value = static_cast<T>(value * factor);
  };
  for (const auto& grad : chunk.grads) {
    Tensor& values = grad->As<SelectedRows>().value;
    if (param.piece.dtype == DType::kFp32) scale(values.Span<float>());
    if (param.piece.dtype == DType::kFp64) scale(values.Span<double>());
  }
}

Status ChunkStore::CheckIds(int param, int trainer, const RowIds& ids) const {
  const Param& table = params_[static_cast<std::size_t>(param)];
  if (ids.bytes() % sizeof(std::int64_t) != 0) {
    return DataLoss("E-rpc-row-bytes", "trainer ", trainer, " asked for rows of ", table.piece.name, " in ",
                    ids.bytes(), " bytes, which is not a whole number of int64 ids");
  }
  if (table.by_id) return OkStatus();
  const std::optional<std::int64_t> outside = ids.Outside(table.piece.shape[0]);
  return outside ? NoSuchRow(trainer, "asked for", *outside, table.piece) : OkStatus();
}

std::size_t ChunkStore::GatheredBytes(const RowsEvent& pull) const {
  return pull.ids.numbers().size() * RowBytes(params_[static_cast<std::size_t>(pull.param)].piece);
}

Status ChunkStore::CheckShard(const RowsEvent& pull) const {
  const Param& table = params_[static_cast<std::size_t>(pull.param)];
  if (!table.by_id) return OkStatus();
  return RequireShard(pull.trainer, "asked for", pull.ids.numbers(), pull.chunk, table.chunks.size(),
                      table.piece);
}

Result<Tensor> ChunkStore::Gather(const RowsEvent& pull) const {
  const Param& p = params_[static_cast<std::size_t>(pull.param)];
  const Chunk& chunk = At(pull.param, pull.chunk);
  const bool is_last = keeps_versions_ && pull.version + 1 == chunk.version;
  const std::size_t row = RowBytes(p.piece);
  const std::span<const std::int64_t> numbers = pull.ids.numbers();
  Tensor rows = MadeToShow(p.piece.dtype, p.piece.shape.WithRows(static_cast<Dim>(numbers.size())));
  if (p.by_id) {
    PENSTOCK_RETURN_IF_ERROR(chunk.table->Fetch(numbers));
    is_last ? chunk.table->ReadLast(numbers, pull.padding, rows.raw())
            : chunk.table->Read(numbers, pull.padding, rows.raw());
    if (is_last && chunk.kept_rows) chunk.kept_rows->Replace(numbers, pull.padding, rows.raw());
    return rows;
  }
  const std::byte* const table =
      is_last && chunk.kept != nullptr ? chunk.kept->value().raw() : chunk.param.raw();
  std::byte* to = rows.raw();
  for (const std::int64_t id : numbers) {
    std::memcpy(to, table + static_cast<std::size_t>(id) * row, row);
    to += row;
  }
  return rows;
}

ChunkStore::Changed ChunkStore::GatherChanged(const RowsEvent& pull) {
  Param& p = params_[static_cast<std::size_t>(pull.param)];
  Chunk& chunk = At(pull.param, 0);
  const Tensor& table = chunk.param;
  const std::vector<std::int64_t> rows = chunk.policy->TakeRows(pull.trainer, pull.version);
  const std::size_t id_bytes = rows.size() * sizeof(std::int64_t), row = RowBytes(p.piece);
  Changed changed{.rows = rows.size(),
                  .bytes = Tensor(DType::kUInt8, {static_cast<Dim>(id_bytes + rows.size() * row)})};
  if (rows.empty()) return changed;
  std::memcpy(changed.bytes.raw(), rows.data(), id_bytes);
  std::byte* to = changed.bytes.raw() + id_bytes;
  for (const std::int64_t id : rows) {
    std::memcpy(to, table.raw() + static_cast<std::size_t>(id) * row, row);
    to += row;
  }
  return changed;
}

NamedTensors ChunkStore::ScalarsOf(const Param& param) const {
  NamedTensors scalars;
  for (const auto* names : {&param.state, &param.constants}) {
    for (const std::string& name : *names)
      scalars.emplace_back(name, scope_.Find(name)->If<Tensor>()->Clone());
  }
  return scalars;
}

TableCopy ChunkStore::CopyOf(const Param& param, const Chunk& chunk, Chunk::Copying copied) {
  const table::RowTable& table = *chunk.table;
  table::RowCopy& rows = copied.rows;
  TableCopy copy{.rows = {}, .state = std::move(copied.scalars)};
  copy.scalars = copy.state.size();
  copy.constants = std::min(copy.scalars, param.constants.size());
  copy.status = rows.status;
  if (rows.life.initialized()) copy.life = rows.TakeLife();
  copy.has_changes = rows.since.has_value();
  copy.gone = std::move(rows.gone);
  if (rows.complete()) {
    copy.rows_all = rows.stored;
    copy.life_all = rows.stored + rows.candidates_all;
  }
  for (std::size_t state = 0; state < rows.states.size(); ++state)
    copy.state.emplace_back(table.name(state + 1), std::move(rows.states[state]));
  if (rows.versions.initialized())
    copy.state.emplace_back(VersionsOf(param.piece.name), std::move(rows.versions));
  copy.rows = std::move(rows.rows);
  return copy;
}

// The first shard has the scalars: those of the server's scope.
std::optional<TableCopy> ChunkStore::CopyForSave(int param, int shard) {
  const Param& saved = params_[static_cast<std::size_t>(param)];
  Chunk& chunk = At(param, shard);
  if (!chunk.saving) {
    chunk.saving = {.rows = chunk.table->BeginCopy(),
                    .scalars = shard == 0 && KeepsState(param) ? ScalarsOf(saved) : NamedTensors()};
  }
  if (!chunk.table->CopyRows(chunk.saving->rows, static_cast<Dim>(kSavedBytes / RowBytes(saved.piece) + 1)))
    return std::nullopt;
  return CopyOf(saved, chunk, *std::exchange(chunk.saving, std::nullopt));
}

// What a checkpoint has beside the rows of a table, from its first shard; the shards have the same updates.
NamedTensors ChunkStore::ScalarsOfCut(const Param& param, int shard, table::RowCopy& rows) const {
  if (shard > 0) return {};
  NamedTensors scalars = ScalarsOf(param);
  if (rows.history.initialized())
    scalars.emplace(scalars.begin(), HistoryOf(param.piece.name), std::exchange(rows.history, Tensor()));
  return scalars;
}

void ChunkStore::BeginCut(int param, int shard, bool changes) {
  const Param& saved = params_[static_cast<std::size_t>(param)];
  Chunk& chunk = At(param, shard);
  const auto portion = static_cast<Dim>(kCutBytes / RowBytes(saved.piece) + 1);
  chunk.cutting = {.rows = chunk.table->BeginCut(changes, portion), .scalars = {}};
  chunk.cutting->scalars = ScalarsOfCut(saved, shard, chunk.cutting->rows);
}

CutPortion ChunkStore::CopyForCheckpoint(int param, int shard) {
  const Param& saved = params_[static_cast<std::size_t>(param)];
  Chunk& chunk = At(param, shard);
  const bool is_last = chunk.table->CopyRows(chunk.cutting->rows, chunk.cutting->rows.portion);
  CutPortion copied{.rows = CopyOf(saved, chunk,
                                   {.rows = chunk.cutting->rows.TakeRows(),
                                    .scalars = std::exchange(chunk.cutting->scalars, {})}),
                    .is_last = is_last};
  if (copied.rows.life && shard > 0) copied.rows.life->clock = Tensor();
  if (is_last) chunk.cutting.reset();
  return copied;
}

TableCopy ChunkStore::CopyTable(int param, int shard) const {
  const Param& saved = params_[static_cast<std::size_t>(param)];
  const Chunk& chunk = At(param, shard);
  table::RowCopy rows = chunk.table->BeginCopy(table::CopiedRows::kStored);
  NamedTensors scalars = ScalarsOfCut(saved, shard, rows);
  chunk.table->CopyRows(rows, chunk.table->row_count());
  TableCopy copy = CopyOf(saved, chunk, {.rows = std::move(rows), .scalars = std::move(scalars)});
  copy.SortRows();
  return copy;
}

// An update is about to change rows that are still to be copied.
void ChunkStore::CopyBefore(Chunk& chunk) {
  if (!chunk.saving && !chunk.cutting) return;
  std::vector<SelectedRows*> gradients;
  for (const auto& grad : chunk.grads) gradients.push_back(&grad->As<SelectedRows>());
  for (auto* const copying : {&chunk.saving, &chunk.cutting}) {
    if (!*copying) continue;
    table::RowCopy& rows = (*copying)->rows;
    if (chunk.table->CopiesAhead(rows)) {
      chunk.table->CopyAhead(rows, gradients);
    } else {
      chunk.table->CopyRows(rows, chunk.table->row_count());
    }
  }
}

Status ChunkStore::RestoreLife(int param, const table::LifeCopy& life) {
  const Param& table = params_[static_cast<std::size_t>(param)];
  if (table.chunks.size() == 1) return table.chunks.front()->table->RestoreLife(life);
  std::vector<SelectedRows> headers =
      SplitRows(life.headers, static_cast<std::uint32_t>(table.chunks.size()));
  for (std::size_t shard = 0; shard < headers.size(); ++shard) {
    PENSTOCK_RETURN_IF_ERROR(
        table.chunks[shard]->table->RestoreLife({.headers = std::move(headers[shard]), .clock = life.clock}));
  }
  return OkStatus();
}

// The save block has one op per table. Its file is not known to the program, so it is set in a copy here.
Status ChunkStore::SaveTable(const SaveEvent& save, TableCopy copy, BlockRunner& runner, Disk& disk) const {
  PENSTOCK_RETURN_IF_ERROR(copy.status);
  copy.SortRows();
  const std::string& table = params_[static_cast<std::size_t>(save.param)].piece.name;
  const std::vector<OpEntry> ops =
      facts_.save_block < 0 ? std::vector<OpEntry>() : program_.block(facts_.save_block).ops();
  Program saving = program_;
  bool found = false;
  for (const OpEntry& entry : ops) {
    Block& block = saving.MutableBlock(facts_.save_block);
    if (entry.op->InputName("X") == table && !found) {
      Op op = *entry.op;
      block.Replace(entry.id, std::move(op.Set("file_path", save.file)));
      found = true;
    } else {
      block.Remove(entry.id);
    }
  }
  if (!found) {
    return InvalidArgument("E-server-save", "pserver ", facts_.address, ": no op of its program saves ",
                           table);
  }
  const NamedTensors state = StateOfRows(table, copy);
  Scope own(&scope_);
  own.FindOrCreate(table)->As<SelectedRows>() = std::move(copy.rows);
  PENSTOCK_RETURN_IF_ERROR(runner.RunBlock(saving, facts_.save_block, own));
  if (!state.empty()) return WriteState(disk, StateFileOf(save.file), state);
  const std::string left = StateFileOf(save.file);  // of a job with another optimizer
  return disk.Exists(left) ? disk.Remove(left) : OkStatus();
}

}  // namespace penstock::pserver
