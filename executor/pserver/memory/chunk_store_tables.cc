// Tables sharded by id: their rows and updates. An optimizer with a rule for rows updates those of a gradient
// one by one, where they are; the block of any other runs on columns.
#include <algorithm>
#include <new>
#include <utility>

#include "executor/protocol/row_shards.h"
#include "executor/pserver/memory/block_names.h"
#include "executor/pserver/memory/chunk_store.h"

namespace penstock::pserver {
namespace {

using table::RowTable;

constexpr std::size_t kShardBytes = std::size_t{4}
                                    << 20;  // of values: a smaller shard is not worth its messages

}  // namespace

// The table's columns are the variables of its block that the startup program made as selected rows.
std::vector<RowTable::ColumnSource> ChunkStore::ColumnsOf(const roles::ServedParam& served) const {
  std::vector<RowTable::ColumnSource> columns = {{served.param.name, scope_.Find(served.param.name)}};
  for (const auto& [name, written] : NamesOf(program_, {served.block})) {
    const bool is_gradient = std::ranges::find(served.grads, name) != served.grads.end();
    if (name == served.param.name || is_gradient || made_for_all_.contains(name)) continue;
    Variable* const shared = scope_.Find(name);
    if (shared != nullptr && shared->initialized() && shared->Is<SelectedRows>())
      columns.push_back({name, shared});
  }
  return columns;
}

// See TableShards.
std::uint32_t ChunkStore::ShardsOf(const Param& param,
                                   const std::vector<RowTable::ColumnSource>& columns) const {
  const auto policy = row_policies_.find(param.piece.name);
  const bool has_budget =
      policy != row_policies_.end() && policy->second.budget_mb > 0 && !policy->second.has_cold();
  if (!param.row_update || !param.row_update->optimizer.rule->StepsWithoutRows() || has_budget) return 1;
  for (const RowTable::ColumnSource& column : columns) {
    const auto* const rows = column.variable == nullptr ? nullptr : column.variable->If<SelectedRows>();
    const bool without_ids =
        rows == nullptr || !rows->value.initialized() || (rows->rows.empty() && rows->value.shape()[0] > 0);
    if (without_ids) return 1;
  }
  const std::size_t bytes = static_cast<std::size_t>(param.piece.shape[0]) * RowBytes(param.piece);
  const auto most = std::min<std::size_t>(
      shards_.exactly ? static_cast<std::size_t>(*shards_.exactly) : static_cast<std::size_t>(shards_.most),
      protocol::kShardsMax);
  const std::size_t shards = shards_.exactly ? most : std::min(most, bytes / kShardBytes);
  return static_cast<std::uint32_t>(std::max<std::size_t>(shards, 1));
}

Status ChunkStore::AddTable(const roles::ServedParam& served) {
  const std::vector<RowTable::ColumnSource> columns = ColumnsOf(served);
  std::optional<RowUpdate> row_update = FindRowUpdate(served);
  Param& param = NewParam(served);
  param.by_id = param.rows = true;
  param.chunk_rows = served.param.shape[0];
  param.row_update = std::move(row_update);
  const std::uint32_t shards = ShardsOf(param, columns);
  if (shards == 1) {
    PENSTOCK_RETURN_IF_ERROR(AddShard(served, columns, shards, param));
  } else {
    std::vector<std::vector<SelectedRows>> split;  // by column
    for (const RowTable::ColumnSource& column : columns)
      split.push_back(SplitRows(*column.variable->If<SelectedRows>(), shards));
    for (std::uint32_t shard = 0; shard < shards; ++shard) {
      std::vector<std::unique_ptr<Variable>> own;
      std::vector<RowTable::ColumnSource> of_shard = columns;
      for (std::size_t column = 0; column < columns.size(); ++column) {
        own.push_back(std::make_unique<Variable>());
        own.back()->As<SelectedRows>() = std::move(split[column][shard]);
        of_shard[column].variable = own.back().get();
      }
      PENSTOCK_RETURN_IF_ERROR(AddShard(served, std::move(of_shard), shards, param));
      param.chunks.back()->columns = std::move(own);
    }
  }
  PENSTOCK_RETURN_IF_ERROR(ContinueHistory(param));
  FreeSources(param);
  return OkStatus();
}

// The shards of a table have the budget of its rows together.
RowPolicy ChunkStore::PolicyOf(const Param& param, std::uint32_t shards) const {
  const auto found = row_policies_.find(param.piece.name);
  if (found == row_policies_.end()) return {};
  RowPolicy policy = found->second;
  if (shards > 1 && policy.budget_mb > 0)
    policy.budget_mb = std::max<std::int64_t>(1, policy.budget_mb / shards);
  return policy;
}

// States that are not rows belong to the server's scope in the first shard; the others have copies.
Status ChunkStore::AddShard(const roles::ServedParam& served, std::vector<RowTable::ColumnSource> columns,
                            std::uint32_t shards, Param& param) {
  const bool is_first = param.chunks.empty();
  auto chunk = std::make_unique<Chunk>();
  chunk->scope = std::make_unique<Scope>(&scope_);
  AddGradients(served, {}, *chunk);
  for (const auto& [name, written] : NamesOf(program_, {served.block})) {
    if (chunk->scope->FindLocal(name) != nullptr) continue;
    if (made_for_all_.contains(name)) continue;
    Variable* shared = scope_.Find(name);
    const bool made = shared != nullptr && shared->initialized();
    const bool rows = name == served.param.name || (made && shared->Is<SelectedRows>());
    if (rows || !made) chunk->scope->FindOrCreate(name);
    if (!made || !shared->Is<Tensor>()) continue;
    if (is_first) {
      NoteForSave(name, written, param);
    } else if (written) {
      auto variable = std::make_shared<Variable>();
      variable->As<Tensor>() = shared->If<Tensor>()->Clone();
      chunk->scope->Bind(name, std::move(variable));
    }
  }
  const auto layout = param.row_update ? RowTable::Layout::kRows : RowTable::Layout::kColumns;
  PENSTOCK_ASSIGN_OR_RETURN(
      RowTable table,
      RowTable::Make(served.param.shape, columns, layout, PolicyOf(param, shards),
                     {.disk = &disk_, .name = StrCat(served.param.name, ".", param.chunks.size())}));
  chunk->table = std::make_unique<RowTable>(std::move(table));
  if (param.row_update) {
    const RowUpdate& update = *param.row_update;
    std::vector<std::size_t> used;
    for (const std::string& name : update.optimizer.columns) {
      const auto named = [&](const RowTable::ColumnSource& column) { return column.name == name; };
      const auto at = std::find_if(columns.begin(), columns.end(), named);
      used.push_back(static_cast<std::size_t>(at - columns.begin()));
    }
    chunk->table->UseRule(update.optimizer.rule, used);
  }
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
  if (param.chunks.size() == 1) {
    PENSTOCK_RETURN_IF_ERROR(param.chunks.front()->table->Continue(rows.value, history->As<Tensor>()));
  } else {
    const std::vector<SelectedRows> split = SplitRows(rows, static_cast<std::uint32_t>(param.chunks.size()));
    for (std::size_t shard = 0; shard < split.size(); ++shard)
      PENSTOCK_RETURN_IF_ERROR(
          param.chunks[shard]->table->Continue(split[shard].value, history->As<Tensor>()));
  }
  versions->Clear();
  history->Clear();
  return OkStatus();
}

// The rows of several shards are in their tables now.
void ChunkStore::FreeSources(const Param& param) {
  for (const auto& chunk : param.chunks) {
    for (const auto& column : chunk->columns) column->As<SelectedRows>() = {};
  }
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

Status ChunkStore::NoMemoryFor(const Param& param, const Chunk& chunk) const {
  return FailedPrecondition("E-run-memory", "not enough memory for more than the ", chunk.table->row_count(),
                            " rows of ", param.piece.name, " that are kept on pserver ", facts_.address);
}

// Brings the rows of the merged gradients from disk.
Status ChunkStore::FetchListed(const Param& param, Chunk& chunk) const {
  if (chunk.table == nullptr || !chunk.table->has_cold_rows()) return OkStatus();
  try {
    for (const auto& grad : chunk.grads)
      PENSTOCK_RETURN_IF_ERROR(chunk.table->Fetch(grad->As<SelectedRows>().rows));
  } catch (const std::bad_alloc&) {
    return NoMemoryFor(param, chunk);
  }
  return OkStatus();
}

Status ChunkStore::UpdateTable(const Param& param, Chunk& chunk, BlockRunner& runner) {
  CopyBefore(chunk);
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
    chunk.table->Update({.gradients = gradients,
                         .factor = chunk.mean_of > 0 ? std::optional(MeanOf(chunk.mean_of)) : update.factor,
                         .rate = rate,
                         .whole = whole});
  } catch (const std::bad_alloc&) {
    return NoMemoryFor(param, chunk);
  }
  return OkStatus();
}

// Replaces the gradients' ids by positions among the stored rows, and runs the block on the columns.
Status ChunkStore::RunOnRows(const Param& param, Chunk& chunk, BlockRunner& runner) {
  RowTable& table = *chunk.table;
  std::vector<SelectedRows*> gradients;
  for (const auto& grad : chunk.grads) gradients.push_back(&grad->As<SelectedRows>());
  try {
    table.Admit(gradients);
    for (const SelectedRows* const gradient : gradients) table.Require(gradient->rows);
  } catch (const std::bad_alloc&) {
    return NoMemoryFor(param, chunk);
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
    return param.by_id && !param.is_key && param.piece.name == name;
  });
  return found == params_.end() ? -1 : static_cast<int>(found.index());
}

bool ChunkStore::HasTables() const {
  return std::ranges::any_of(params_, [](const Param& param) { return param.by_id && !param.is_key; });
}

Status ChunkStore::PublishTables() const {
  for (const Param& param : params_) {
    if (!param.by_id || param.is_key) continue;
    for (const auto& chunk : param.chunks) {
      const std::lock_guard lock(chunk->rows_may_move);
      PENSTOCK_RETURN_IF_ERROR(chunk->table->Publish());
      chunk->is_over = true;
    }
    for (std::size_t column = 0; column < param.chunks.front()->columns.size(); ++column) {
      std::vector<SelectedRows> shards;
      for (const auto& chunk : param.chunks)
        shards.push_back(std::exchange(chunk->columns[column]->As<SelectedRows>(), {}));
      const std::string& name = param.chunks.front()->table->name(column);
      scope_.Find(name)->As<SelectedRows>() = JoinRows(std::move(shards));
    }
  }
  return OkStatus();
}

bool ChunkStore::BeginSweep(int param, int shard) {
  Chunk& chunk = At(param, shard);
  if (chunk.table == nullptr || !chunk.table->sweeping()) return false;
  return !std::exchange(chunk.sweeps, true);
}

// Rows that a copy in portions lists stay where they are; the update that completes the copy continues.
bool ChunkStore::Sweep(int param, int shard) {
  Chunk& chunk = At(param, shard);
  const std::lock_guard lock(chunk.rows_may_move);
  const bool copies = chunk.saving || chunk.cutting;
  chunk.sweeps = !chunk.is_over && !copies && chunk.table->Sweep();
  return chunk.sweeps;
}

table::RowCounts ChunkStore::RowCountsOf(int param, int shard) const {
  const auto& table = At(param, shard).table;
  return table == nullptr ? table::RowCounts() : table->counts();
}

table::ColdCounts ChunkStore::ColdCountsOf(int param, int shard) const {
  const auto& table = At(param, shard).table;
  return table == nullptr ? table::ColdCounts() : table->cold_counts();
}

bool ChunkStore::KeepsState(int table) const {
  const Param& param = params_[static_cast<std::size_t>(table)];
  return param.chunks.front()->table->column_count() > 1 || !param.state.empty();
}

}  // namespace penstock::pserver
