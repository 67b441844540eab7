// Gradients of rows, requests for rows, and saves of tables.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "executor/pserver/memory/chunk_store.h"
#include "framework/base/crc32c.h"

namespace penstock::pserver {
namespace {

constexpr std::size_t kSavedBytes = std::size_t{16} << 20;  // copied between two other jobs of the table

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

Status NoSuchRow(int trainer, const char* did, std::int64_t row, const protocol::ContractPiece& piece) {
  return InvalidArgument("E-rpc-row", "trainer ", trainer, " ", did, " row ", row, " of ", piece.name,
                         ", which has ", piece.shape[0]);
}

// The tensors of a table's state file; none without state.
NamedTensors StateOfRows(const std::string& table, ChunkStore::TableCopy& copy) {
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
  const protocol::ContractPiece& piece = params_[static_cast<std::size_t>(merge.param)].piece;
  const bool by_id = params_[static_cast<std::size_t>(merge.param)].table != nullptr;
  const std::size_t id_bytes = merge.rows * sizeof(std::int64_t);
  gradient.height = piece.shape[0];
  gradient.rows.resize(merge.rows);
  gradient.value.Reset(piece.dtype, piece.shape.WithRows(static_cast<Dim>(merge.rows)));
  if (merge.rows == 0) return OkStatus();
  CopyRange(merge.parts, 0, id_bytes, reinterpret_cast<std::byte*>(gradient.rows.data()));
  CopyRange(merge.parts, id_bytes, gradient.value.bytes(), gradient.value.raw());
  if (by_id) return OkStatus();
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
  if (table.table != nullptr) return OkStatus();  // sharded by id
  const std::optional<std::int64_t> outside = ids.Outside(table.piece.shape[0]);
  return outside ? NoSuchRow(trainer, "asked for", *outside, table.piece) : OkStatus();
}

std::size_t ChunkStore::GatheredBytes(const RowsEvent& pull) const {
  return pull.ids.numbers().size() * RowBytes(params_[static_cast<std::size_t>(pull.param)].piece);
}

Tensor ChunkStore::Gather(const RowsEvent& pull) const {
  const Param& p = params_[static_cast<std::size_t>(pull.param)];
  const Chunk& chunk = *p.chunks.front();
  const bool is_last = keeps_versions_ && pull.version + 1 == chunk.version;
  const std::size_t row = RowBytes(p.piece);
  const std::span<const std::int64_t> numbers = pull.ids.numbers();
  Tensor rows(p.piece.dtype, p.piece.shape.WithRows(static_cast<Dim>(numbers.size())));
  if (p.table != nullptr) {
    is_last ? p.table->ReadLast(numbers, pull.padding, rows.raw())
            : p.table->Read(numbers, pull.padding, rows.raw());
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

ChunkStore::TableCopy ChunkStore::CopyOf(const Param& param, table::RowCopy rows, NamedTensors scalars) {
  TableCopy copy{.rows = std::move(rows.rows), .state = std::move(scalars), .scalars = 0, .constants = 0};
  copy.scalars = copy.state.size();
  copy.constants = std::min(copy.scalars, param.constants.size());
  for (std::size_t state = 0; state < rows.states.size(); ++state)
    copy.state.emplace_back(param.table->name(state + 1), std::move(rows.states[state]));
  if (rows.versions.initialized())
    copy.state.emplace_back(VersionsOf(param.piece.name), std::move(rows.versions));
  return copy;
}

std::optional<ChunkStore::TableCopy> ChunkStore::CopyForSave(int param) {
  const Param& saved = params_[static_cast<std::size_t>(param)];
  Chunk& chunk = *saved.chunks.front();
  if (!chunk.saving) {
    chunk.saving = saved.table->BeginCopy();
    chunk.saved_scalars = KeepsState(param) ? ScalarsOf(saved) : NamedTensors();
  }
  if (!saved.table->CopyRows(*chunk.saving, static_cast<Dim>(kSavedBytes / RowBytes(saved.piece) + 1)))
    return std::nullopt;
  TableCopy copy = CopyOf(saved, *std::move(chunk.saving), std::exchange(chunk.saved_scalars, {}));
  chunk.saving.reset();
  return copy;
}

ChunkStore::TableCopy ChunkStore::CopyTable(int param) const {
  const Param& saved = params_[static_cast<std::size_t>(param)];
  table::RowCopy rows = saved.table->BeginCopy(table::CopiedRows::kStored);
  saved.table->CopyRows(rows, saved.table->row_count());
  NamedTensors scalars = ScalarsOf(saved);
  if (saved.table->KeepsHistory())
    scalars.emplace(scalars.begin(), HistoryOf(saved.piece.name), std::move(rows.history));
  TableCopy copy = CopyOf(saved, std::move(rows), std::move(scalars));
  if (HasRowPolicy(param)) copy.life = saved.table->CopyLife();
  return copy;
}

Status ChunkStore::RestoreLife(int param, const table::LifeCopy& life) {
  return params_[static_cast<std::size_t>(param)].table->RestoreLife(life);
}

// The save block has one op per table. Its file is not known to the program, so it is set in a copy here.
Status ChunkStore::SaveTable(const SaveEvent& save, TableCopy copy, BlockRunner& runner, Disk& disk) const {
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
