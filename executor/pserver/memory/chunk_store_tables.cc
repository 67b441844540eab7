// Tables sharded by id: their rows and updates. An optimizer with a rule for rows updates those of a gradient
// one by one, where they are; the block of any other runs on columns.
#include <algorithm>
#include <new>
#include <utility>

#include "executor/pserver/memory/block_names.h"
#include "executor/pserver/memory/chunk_store.h"

namespace penstock::pserver {

// The table's columns are the variables of its block that the startup program made as selected rows.
Status ChunkStore::AddTable(const roles::ServedParam& served) {
  using table::RowTable;
  auto chunk = std::make_unique<Chunk>();
  chunk->scope = std::make_unique<Scope>(&scope_);
  AddGradients(served, {}, *chunk);
  std::vector<RowTable::ColumnSource> columns = {{served.param.name, scope_.Find(served.param.name)}};
  Param& param = NewParam(served);
  for (const auto& [name, written] : NamesOf(program_, {served.block})) {
    if (chunk->scope->FindLocal(name) != nullptr) continue;
    if (made_for_all_.contains(name)) continue;
    Variable* shared = scope_.Find(name);
    const bool made = shared != nullptr && shared->initialized();
    const bool rows = name == served.param.name || (made && shared->Is<SelectedRows>());
    if (rows || !made) chunk->scope->FindOrCreate(name);
    if (rows && name != served.param.name) columns.push_back({name, shared});
    if (made && shared->Is<Tensor>()) NoteForSave(name, written, param);
  }
  param.rows = true;
  param.chunk_rows = served.param.shape[0];
  param.row_update = FindRowUpdate(served);
  const auto layout = param.row_update ? RowTable::Layout::kRows : RowTable::Layout::kColumns;
  const auto policy = row_policies_.find(served.param.name);
  PENSTOCK_ASSIGN_OR_RETURN(RowTable table,
                            RowTable::Make(served.param.shape, columns, layout,
                                           policy == row_policies_.end() ? RowPolicy() : policy->second));
  param.table = std::make_unique<RowTable>(std::move(table));
  if (param.row_update) {
    RowUpdate& update = *param.row_update;
    std::vector<std::size_t> used;
    for (const std::string& name : update.optimizer.columns) {
      const auto named = [&](const RowTable::ColumnSource& column) { return column.name == name; };
      const auto at = std::find_if(columns.begin(), columns.end(), named);
      used.push_back(static_cast<std::size_t>(at - columns.begin()));
    }
    param.table->UseRule(update.optimizer.rule, used);
  }
  PENSTOCK_RETURN_IF_ERROR(ContinueHistory(param));
  PENSTOCK_RETURN_IF_ERROR(AddPolicy(served, *chunk));
  param.chunks.push_back(std::move(chunk));
  return OkStatus();
}

// Takes over from the scope what a checkpoint says of updates that rows missed.
Status ChunkStore::ContinueHistory(const Param& param) {
  const std::string& name = param.piece.name;
  Variable* const versions = scope_.Find(VersionsOf(name));
  Variable* const history = scope_.Find(HistoryOf(name));
  if (versions == nullptr || history == nullptr || !versions->initialized()) return OkStatus();
  const SelectedRows& rows = versions->As<SelectedRows>();
  if (rows.rows != scope_.Find(name)->As<SelectedRows>().rows)
    return InvalidArgument("E-server-shape", VersionsOf(name), " lists other rows than ", name);
  PENSTOCK_RETURN_IF_ERROR(param.table->Continue(rows.value, history->As<Tensor>()));
  versions->Clear();
  history->Clear();
  return OkStatus();
}

// Whether the block does nothing but merge the gradients and run the optimizer, whose columns are rows.
std::optional<ChunkStore::RowUpdate> ChunkStore::FindRowUpdate(const roles::ServedParam& served) const {
  if (!served.row_optimizer || served.delta || !served.backups.empty() || served.measure_block >= 0)
    return std::nullopt;
  const roles::RowOptimizer& optimizer = *served.row_optimizer;
  const std::optional<MergePlan> merge = FindMerge(program_, served.block, served.grads);
  if (!merge || merge->output != optimizer.grad || IsShared(merge->output)) return std::nullopt;
  const auto replaced = [&](const OpEntry& entry) {
    return std::ranges::find(optimizer.replaces, entry.id) != optimizer.replaces.end() ||
           std::ranges::find(merge->replaces, entry.id) != merge->replaces.end();
  };
  if (!std::ranges::all_of(program_.block(served.block).ops(), replaced)) return std::nullopt;
  for (const std::string& name : optimizer.columns) {
    const Variable* held = scope_.Find(name);
    const SelectedRows* rows = held == nullptr ? nullptr : held->If<SelectedRows>();
    if (rows == nullptr || !rows->value.initialized() || rows->value.dtype() != served.param.dtype)
      return std::nullopt;
  }
  return RowUpdate{.optimizer = optimizer, .factor = merge->factor};
}

Status ChunkStore::NoMemoryFor(const Param& param) const {
  return FailedPrecondition("E-run-memory", "not enough memory for more than the ", param.table->row_count(),
                            " rows of ", param.piece.name, " that are kept on pserver ", facts_.address);
}

Status ChunkStore::UpdateTable(const Param& param, Chunk& chunk, BlockRunner& runner) {
  if (chunk.saving) param.table->CopyRows(*chunk.saving, param.table->row_count());
  return param.row_update ? UpdateRows(param, chunk) : RunOnRows(param, chunk, runner);
}

Result<std::byte*> ChunkStore::ScalarOf(const Param& param, const Chunk& chunk,
                                        const std::string& name) const {
  Variable* const variable = chunk.scope->Find(name);
  Tensor* const tensor = variable == nullptr ? nullptr : variable->If<Tensor>();
  if (tensor == nullptr || !tensor->initialized() || tensor->dtype() != param.piece.dtype ||
      tensor->count() != 1) {
    return FailedPrecondition("E-server-startup", name, ", which the update of ", param.piece.name,
                              " uses, is not one element of ", DTypeName(param.piece.dtype),
                              " on this pserver; run its startup program first");
  }
  return tensor->raw();
}

Status ChunkStore::UpdateRows(const Param& param, const Chunk& chunk) const {
  const RowUpdate& update = *param.row_update;
  std::byte* rate = nullptr;
  if (!update.optimizer.rate.empty()) {
    PENSTOCK_ASSIGN_OR_RETURN(rate, ScalarOf(param, chunk, update.optimizer.rate));
  }
  std::vector<std::byte*> whole;
  for (const std::string& name : update.optimizer.whole) {
    PENSTOCK_ASSIGN_OR_RETURN(std::byte* const state, ScalarOf(param, chunk, name));
    whole.push_back(state);
  }
  std::vector<SelectedRows*> gradients;
  for (const auto& grad : chunk.grads) gradients.push_back(&grad->As<SelectedRows>());
  try {
    param.table->Update({.gradients = gradients,
                         .factor = chunk.mean_of > 0 ? std::optional(MeanOf(chunk.mean_of)) : update.factor,
                         .rate = rate,
                         .whole = whole});
  } catch (const std::bad_alloc&) {
    return NoMemoryFor(param);
  }
  return OkStatus();
}

// Replaces the gradients' ids by positions among the stored rows, and runs the block on the columns.
Status ChunkStore::RunOnRows(const Param& param, Chunk& chunk, BlockRunner& runner) {
  table::RowTable& table = *param.table;
  std::vector<SelectedRows*> gradients;
  for (const auto& grad : chunk.grads) gradients.push_back(&grad->As<SelectedRows>());
  try {
    table.Admit(gradients);
    for (const SelectedRows* const gradient : gradients) table.Require(gradient->rows);
  } catch (const std::bad_alloc&) {
    return NoMemoryFor(param);
  }
  for (SelectedRows* const gradient : gradients) {
    for (std::int64_t& row : gradient->rows) row = table.PositionOf(row);
    gradient->height = table.capacity();
  }
  for (std::size_t i = 0; i < table.column_count(); ++i)
    chunk.scope->Find(table.name(i))->As<Tensor>() = table.column(i);
  PENSTOCK_RETURN_IF_ERROR(chunk.update.Run(runner, program_, param.block, *chunk.scope));
  // A runner may have put an output into a new buffer.
  for (std::size_t i = 0; i < table.column_count(); ++i)
    table.column(i) = chunk.scope->Find(table.name(i))->As<Tensor>();
  table.EndUpdate();
  return OkStatus();
}

int ChunkStore::FindTable(const std::string& name) const {
  const auto found = std::find_if(params_.begin(), params_.end(), [&](const Param& param) {
    return param.table != nullptr && param.piece.name == name;
  });
  return found == params_.end() ? -1 : static_cast<int>(found - params_.begin());
}

bool ChunkStore::HasTables() const {
  return std::ranges::any_of(params_, [](const Param& param) { return param.table != nullptr; });
}

void ChunkStore::PublishTables() const {
  for (const Param& param : params_) {
    if (param.table == nullptr) continue;
    Chunk& chunk = *param.chunks.front();
    const std::lock_guard lock(chunk.rows_may_move);
    param.table->Publish();
    chunk.is_over = true;
  }
}

bool ChunkStore::BeginSweep(int param) {
  const auto& table = params_[static_cast<std::size_t>(param)].table;
  if (table == nullptr || !table->sweeping()) return false;
  return !std::exchange(At(param, 0).sweeps, true);
}

// Rows that a copy in portions lists stay where they are; the update that completes the copy continues.
bool ChunkStore::Sweep(int param) {
  Chunk& chunk = At(param, 0);
  const std::lock_guard lock(chunk.rows_may_move);
  chunk.sweeps = !chunk.is_over && !chunk.saving && params_[static_cast<std::size_t>(param)].table->Sweep();
  return chunk.sweeps;
}

table::RowCounts ChunkStore::RowCountsOf(int param) const {
  const auto& table = params_[static_cast<std::size_t>(param)].table;
  return table == nullptr ? table::RowCounts() : table->counts();
}

bool ChunkStore::KeepsState(int table) const {
  const Param& param = params_[static_cast<std::size_t>(table)];
  return param.table->column_count() > 1 || !param.state.empty();
}

}  // namespace penstock::pserver
