#include "executor/pserver/chunk_store.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <new>
#include <optional>

#include "framework/ir/program.h"
#include "framework/tensor/chunk.h"

namespace penstock::pserver {
namespace {

// Names that a block's ops mention, and whether one writes them.
std::map<std::string, bool> NamesOf(const Block& block) {
  std::map<std::string, bool> names;
  for (const OpEntry& entry : block.ops()) {
    for (const std::string& name : entry.op->InputNames()) names.try_emplace(name, false);
    for (const std::string& name : entry.op->OutputNames()) names[name] = true;
  }
  names.erase(kEmptyVarName);
  names.erase("");
  return names;
}

void Place(const std::vector<Payload>& parts, Tensor& to) {
  std::byte* at = to.raw();
  for (const Payload& part : parts) {
    part.CopyTo(at);
    at += part.size();
  }
}

// `size` bytes from `begin` on of the parts, laid end to end.
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

std::vector<std::int64_t> NumbersOf(const Payload& ids) {
  std::vector<std::int64_t> numbers(ids.size() / sizeof(std::int64_t));
  CopyRange({ids}, 0, numbers.size() * sizeof(std::int64_t), reinterpret_cast<std::byte*>(numbers.data()));
  return numbers;
}

}  // namespace

Result<std::unique_ptr<ChunkStore>> ChunkStore::Make(const Program& program, const roles::ServerRole& facts,
                                                     Scope& scope, std::optional<std::size_t> chunk_bytes) {
  std::unique_ptr<ChunkStore> store(new ChunkStore(program, facts, scope));
  if (facts.lr_block >= 0) {
    for (const auto& [name, written] : NamesOf(program.block(facts.lr_block))) {
      if (written) store->made_by_schedule_.insert(name);
    }
  }
  for (const roles::ServedParam& served : store->facts_.params)
    PENSTOCK_RETURN_IF_ERROR(store->AddParam(served, chunk_bytes));
  return store;
}

namespace {

Dim ChunkRowsOf(const roles::ServedParam& served, std::optional<std::size_t> chunk_bytes) {
  if (!chunk_bytes && served.chunk_rows) return *served.chunk_rows;
  const Shape& shape = served.param.shape;
  const Dim rows = shape.rank() == 0 ? 1 : shape[0];
  const auto row_bytes = shape.RowWidth() * static_cast<Dim>(SizeOf(served.param.dtype));
  const auto limit = chunk_bytes ? static_cast<std::int64_t>(*chunk_bytes) : kChunkBytes;
  return served.elementwise ? ChunkRows(rows, row_bytes, limit) : rows;
}

}  // namespace

Status ChunkStore::AddParam(const roles::ServedParam& served, std::optional<std::size_t> chunk_bytes) {
  if (served.by_id) return AddTable(served);
  const protocol::ContractPiece& piece = served.param;
  // Trainer 0 brings the value; whatever the start-up program may have made of it does not count.
  if (served.start) scope_.FindOrCreate(piece.name)->As<Tensor>() = Tensor(piece.dtype, piece.shape);
  Variable* variable = scope_.Find(piece.name);
  const Tensor* whole = variable == nullptr ? nullptr : variable->If<Tensor>();
  if (whole == nullptr || !whole->initialized()) {
    return FailedPrecondition("E-server-startup", piece.name,
                              " has no value on this pserver; run its start-up program first");
  }
  if (whole->shape() != piece.shape || whole->dtype() != piece.dtype) {
    return InvalidArgument("E-server-shape", piece, " is declared, but the value there is ",
                           DTypeName(whole->dtype()), whole->shape());
  }
  Param& param = params_.emplace_back();
  param.piece = piece;
  param.start = served.start;
  param.rows = served.rows;
  param.block = served.block;
  const Dim rows = piece.shape.rank() == 0 ? 1 : piece.shape[0];
  param.chunk_rows = ChunkRowsOf(served, chunk_bytes);
  for (Dim begin = 0; begin < rows; begin += param.chunk_rows) {
    PENSTOCK_RETURN_IF_ERROR(
        AddChunk(served, *whole, begin, std::min(rows, begin + param.chunk_rows), param));
  }
  return OkStatus();
}

void ChunkStore::AddGradients(const roles::ServedParam& served, Chunk& chunk) {
  for (const std::string& grad : served.grads) {
    auto variable = std::make_shared<Variable>();
    if (served.rows) {
      variable->As<SelectedRows>() = {.rows = {},
                                      .height = served.param.shape[0],
                                      .value = Tensor(served.param.dtype, served.param.shape.WithRows(0))};
    } else {
      variable->As<Tensor>() = Tensor(served.param.dtype, chunk.param.shape());
    }
    chunk.scope->Bind(grad, variable);
    chunk.grads.push_back(std::move(variable));
  }
}

// What the block mentions and the start-up program made as selected rows are the table's columns.
Status ChunkStore::AddTable(const roles::ServedParam& served) {
  auto chunk = std::make_unique<Chunk>();
  chunk->scope = std::make_unique<Scope>(&scope_);
  AddGradients(served, *chunk);
  std::vector<table::RowTable::ColumnSource> columns = {{served.param.name, scope_.Find(served.param.name)}};
  for (const auto& [name, written] : NamesOf(program_.block(served.block))) {
    if (chunk->scope->FindLocal(name) != nullptr) continue;
    if (made_by_schedule_.contains(name)) continue;
    Variable* shared = scope_.Find(name);
    const bool made = shared != nullptr && shared->initialized();
    const bool rows = name == served.param.name || (made && shared->Is<SelectedRows>());
    if (rows || !made) chunk->scope->FindOrCreate(name);
    if (rows && name != served.param.name) columns.push_back({name, shared});
  }
  Param& param = params_.emplace_back();
  param.piece = served.param;
  param.rows = true;
  param.block = served.block;
  param.chunk_rows = served.param.shape[0];
  PENSTOCK_ASSIGN_OR_RETURN(table::RowTable table, table::RowTable::Make(served.param.shape, columns));
  param.table = std::make_unique<table::RowTable>(std::move(table));
  param.chunks.push_back(std::move(chunk));
  return OkStatus();
}

Status ChunkStore::AddChunk(const roles::ServedParam& served, const Tensor& whole, Dim begin, Dim end,
                            Param& param) {
  auto chunk = std::make_unique<Chunk>();
  chunk->scope = std::make_unique<Scope>(&scope_);
  const bool cut = end - begin != (served.param.shape.rank() == 0 ? 1 : served.param.shape[0]);
  chunk->param = cut ? whole.Rows(begin, end) : whole;
  AddGradients(served, *chunk);
  if (served.start) {
    param.chunks.push_back(std::move(chunk));
    return OkStatus();
  }
  for (const auto& [name, written] : NamesOf(program_.block(served.block))) {
    if (chunk->scope->FindLocal(name) != nullptr) continue;
    if (made_by_schedule_.contains(name)) continue;  // found in the scope around, when it is there
    Variable* shared = scope_.Find(name);
    if (shared == nullptr || !shared->initialized()) {  // a temporary of the block
      chunk->scope->FindOrCreate(name);
      continue;
    }
    const Tensor* tensor = shared->If<Tensor>();
    if (tensor == nullptr) {
      return InvalidArgument("E-server-var", name, ", which the update of ", served.param.name,
                             " uses, is not a tensor");
    }
    if (tensor->shape() == served.param.shape) {
      Variable* seen = shared;  // an uncut piece is worked on where it lies
      if (cut) {
        seen = chunk->scope->FindOrCreate(name);
        seen->As<Tensor>() = tensor->Rows(begin, end);
      }
      if (written) chunk->views.push_back({seen, *seen->If<Tensor>()});
    } else if (written && begin > 0) {
      auto variable = std::make_shared<Variable>();
      variable->As<Tensor>() = tensor->Clone();
      chunk->scope->Bind(name, std::move(variable));
    }
  }
  param.chunks.push_back(std::move(chunk));
  return OkStatus();
}

std::vector<MachineConfig::Param> ChunkStore::Shapes() const {
  std::vector<MachineConfig::Param> shapes;
  for (const Param& param : params_) {
    MachineConfig::Param& shape = shapes.emplace_back();
    shape.name = param.piece.name;
    shape.start = param.start;
    if (param.rows) {
      shape.pushed_row_bytes = sizeof(std::int64_t) + static_cast<std::size_t>(param.piece.shape.RowWidth()) *
                                                          SizeOf(param.piece.dtype);
    }
    for (const auto& chunk : param.chunks) shape.chunk_bytes.push_back(chunk->param.bytes());
  }
  return shapes;
}

Status ChunkStore::Merge(const MergeAction& merge) {
  if (merge.initial) return SetInitial(merge);
  Chunk& chunk = At(merge.param, merge.chunk);
  const Param& param = params_[static_cast<std::size_t>(merge.param)];
  if (param.start) {
    Place(merge.parts, chunk.param);
    return OkStatus();
  }
  if (param.rows) {
    return MergeRows(merge, chunk.grads[static_cast<std::size_t>(merge.trainer)]->As<SelectedRows>());
  }
  Tensor& gradient = chunk.grads[static_cast<std::size_t>(merge.trainer)]->As<Tensor>();
  // The block may have replaced the buffer of a variable that it also writes.
  if (!gradient.initialized() || gradient.shape() != chunk.param.shape()) {
    gradient = Tensor(chunk.param.dtype(), chunk.param.shape());
  }
  if (merge.parts.empty()) {
    std::memset(gradient.raw(), 0, gradient.bytes());
    return OkStatus();
  }
  Place(merge.parts, gradient);
  return OkStatus();
}

namespace {

Status NoSuchRow(int trainer, const char* did, std::int64_t row, const protocol::ContractPiece& piece) {
  return InvalidArgument("E-rpc-row", "trainer ", trainer, " ", did, " row ", row, " of ", piece.name,
                         ", which has ", piece.shape[0]);
}

// The first id that is no row of the piece. A table that is dealt out by id has a row for each.
std::optional<std::int64_t> Outside(const std::vector<std::int64_t>& ids,
                                    const protocol::ContractPiece& piece, bool by_id) {
  if (by_id) return std::nullopt;
  const auto outside = [&](std::int64_t id) { return id < 0 || id >= piece.shape[0]; };
  const auto found = std::find_if(ids.begin(), ids.end(), outside);
  return found == ids.end() ? std::nullopt : std::optional(*found);
}

}  // namespace

// The parts hold all ids, then the values, as many bytes as `merge.rows` says: the state machine has
// compared.
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
  const std::optional<std::int64_t> outside = Outside(gradient.rows, piece, by_id);
  return outside ? NoSuchRow(merge.trainer, "sent a gradient of", *outside, piece) : OkStatus();
}

Status ChunkStore::CheckIds(int param, int trainer, const Payload& ids) const {
  const protocol::ContractPiece& piece = params_[static_cast<std::size_t>(param)].piece;
  if (ids.size() % sizeof(std::int64_t) != 0) {
    return DataLoss("E-rpc-row-bytes", "trainer ", trainer, " asked for rows of ", piece.name, " in ",
                    ids.size(), " bytes, which are no numbers of rows");
  }
  const std::optional<std::int64_t> outside =
      Outside(NumbersOf(ids), piece, params_[static_cast<std::size_t>(param)].table != nullptr);
  return outside ? NoSuchRow(trainer, "asked for", *outside, piece) : OkStatus();
}

Tensor ChunkStore::Gather(const RowsEvent& pull) const {
  const Param& p = params_[static_cast<std::size_t>(pull.param)];
  const Tensor& table = p.chunks.front()->param;
  const std::size_t row = static_cast<std::size_t>(p.piece.shape.RowWidth()) * SizeOf(p.piece.dtype);
  const std::vector<std::int64_t> numbers = NumbersOf(pull.ids);
  Tensor rows(p.piece.dtype, p.piece.shape.WithRows(static_cast<Dim>(numbers.size())));
  if (p.table != nullptr) {
    p.table->Read(numbers, pull.padding, rows.raw());
    return rows;
  }
  std::byte* to = rows.raw();
  for (const std::int64_t id : numbers) {
    std::memcpy(to, table.raw() + static_cast<std::size_t>(id) * row, row);
    to += row;
  }
  return rows;
}

// The gradients' ids become positions among the kept rows, and the block runs on the columns.
Status ChunkStore::RunOnRows(const Param& param, Chunk& chunk, BlockRunner& runner) {
  table::RowTable& table = *param.table;
  try {  // how many rows there will be is up to the trainers
    for (const auto& grad : chunk.grads) table.Require(grad->As<SelectedRows>().rows);
  } catch (const std::bad_alloc&) {
    return FailedPrecondition("E-run-memory", "not enough memory for more than the ", table.row_count(),
                              " rows of ", param.piece.name, " that are kept on pserver ", facts_.address);
  }
  for (const auto& grad : chunk.grads) {
    SelectedRows& rows = grad->As<SelectedRows>();
    for (std::int64_t& row : rows.rows) row = table.PositionOf(row);
    rows.height = table.capacity();
  }
  for (std::size_t i = 0; i < table.column_count(); ++i)
    chunk.scope->Find(table.name(i))->As<Tensor>() = table.column(i);
  PENSTOCK_RETURN_IF_ERROR(runner.RunBlock(program_, param.block, *chunk.scope));
  // A runner may have put an output into a new buffer.
  for (std::size_t i = 0; i < table.column_count(); ++i)
    table.column(i) = chunk.scope->Find(table.name(i))->As<Tensor>();
  return OkStatus();
}

int ChunkStore::FindTable(const std::string& name) const {
  const auto found = std::find_if(params_.begin(), params_.end(), [&](const Param& param) {
    return param.table != nullptr && param.piece.name == name;
  });
  return found == params_.end() ? -1 : static_cast<int>(found - params_.begin());
}

void ChunkStore::PublishTable(int param) const {
  const Param& published = params_[static_cast<std::size_t>(param)];
  if (published.table != nullptr) published.table->Publish();
}

void ChunkStore::PublishTables() const {
  for (std::size_t p = 0; p < params_.size(); ++p) PublishTable(static_cast<int>(p));
}

// The save block has an op for each table, and no file that a program could know.
Status ChunkStore::SaveTable(const SaveEvent& save, BlockRunner& runner) const {
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
  if (found) return runner.RunBlock(saving, facts_.save_block, scope_);
  return InvalidArgument("E-server-save", "pserver ", facts_.address, ": no op of its program saves ", table);
}

Status ChunkStore::Run(const RunAction& run, BlockRunner& runner) {
  if (run.param < 0) return runner.RunBlock(program_, facts_.lr_block, scope_);
  Chunk& chunk = At(run.param, run.chunk);
  const Param& param = params_[static_cast<std::size_t>(run.param)];
  Status status = param.table != nullptr ? RunOnRows(param, chunk, runner)
                                         : runner.RunBlock(program_, param.block, *chunk.scope);
  if (!status.ok()) {
    return std::move(status).With(StrCat("in the update of ", param.piece.name, " for step ", run.step,
                                         " on pserver ", facts_.address));
  }
  // A runner may have put an output into a new buffer; the whole variable still is the old one.
  for (View& view : chunk.views) {
    Tensor& now = view.variable->As<Tensor>();
    if (now.raw() == view.rows.raw()) continue;
    view.rows.CopyFrom(now);
    now = view.rows;
  }
  return OkStatus();
}

const Tensor& ChunkStore::Snapshot(int param, int chunk, std::uint64_t version) {
  Chunk& c = At(param, chunk);
  if (!c.copy.initialized() || c.copy_version != version) {
    c.copy.Reset(c.param.dtype(), c.param.shape());  // a new buffer if somebody still sends the old one
    c.copy.CopyFrom(c.param);
    c.copy_version = version;
  }
  return c.copy;
}

}  // namespace penstock::pserver
