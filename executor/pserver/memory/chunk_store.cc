#include "executor/pserver/memory/chunk_store.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "executor/protocol/compressed.h"
#include "executor/pserver/memory/block_names.h"
#include "executor/pserver/memory/gradient_sum.h"
#include "executor/pserver/memory/policies/delay_policy.h"
#include "executor/pserver/memory/policies/geo_policy.h"
#include "framework/ir/program.h"
#include "framework/tensor/chunk.h"
#include "framework/text/policies.h"

namespace penstock::pserver {
namespace {

void Place(const std::vector<Payload>& parts, Tensor& to) {
  std::byte* at = to.raw();
  for (const Payload& part : parts) {
    part.CopyTo(at);
    at += part.size();
  }
}

Dim ChunkRowsOf(const roles::ServedParam& served, std::optional<std::size_t> chunk_limit) {
  if (!chunk_limit && served.chunk_rows) return *served.chunk_rows;
  const Shape& shape = served.param.shape;
  const Dim rows = shape.rank() == 0 ? 1 : shape[0];
  const auto row_bytes = shape.RowWidth() * static_cast<Dim>(SizeOf(served.param.dtype));
  const auto limit = chunk_limit ? static_cast<std::int64_t>(*chunk_limit) : kChunkBytes;
  return served.elementwise ? ChunkRows(rows, row_bytes, limit) : rows;
}

}  // namespace

Result<std::unique_ptr<ChunkStore>> ChunkStore::Make(const Program& program, const roles::PserverFacts& facts,
                                                     Scope& scope, std::optional<std::size_t> chunk_limit,
                                                     std::size_t part_bytes, TableShards shards, Disk& disk) {
  std::unique_ptr<ChunkStore> store(new ChunkStore(program, facts, scope, part_bytes, shards, disk));
  PENSTOCK_ASSIGN_OR_RETURN(JobPolicies policies, ReadPolicies(program.meta()));
  store->row_policies_ = std::move(policies.rows);
  for (const auto& [name, written] : NamesOf(program, {facts.lr_block, facts.shared_block})) {
    if (written) store->made_for_all_.insert(name);
  }
  if (facts.shared_block >= 0) store->TakeOverExchange();
  for (const roles::ServedParam& served : store->facts_.params)
    PENSTOCK_RETURN_IF_ERROR(store->AddParam(served, chunk_limit));
  return store;
}

void ChunkStore::BeginAt(std::uint64_t version) {
  for (const Param& param : params_) {
    for (const std::unique_ptr<Chunk>& chunk : param.chunks) chunk->version = param.start ? 0 : version;
  }
}

void ChunkStore::NoteAllRows() {
  for (const Param& param : params_) {
    for (const std::unique_ptr<Chunk>& chunk : param.chunks)
      if (chunk->policy != nullptr) chunk->policy->UpdatedAll();
  }
}

Status ChunkStore::AddParam(const roles::ServedParam& served, std::optional<std::size_t> chunk_limit) {
  if (served.by_id) return AddTable(served);
  const protocol::ContractPiece& piece = served.param;
  // Trainer 0 sends the value; a value from the startup program is ignored.
  if (served.start) scope_.FindOrCreate(piece.name)->As<Tensor>() = Tensor(piece.dtype, piece.shape);
  Variable* variable = scope_.Find(piece.name);
  const Tensor* whole = variable == nullptr ? nullptr : variable->If<Tensor>();
  if (whole == nullptr || !whole->initialized()) {
    return FailedPrecondition("E-server-startup", piece.name,
                              " has no value on this pserver; run its startup program first");
  }
  if (whole->shape() != piece.shape || whole->dtype() != piece.dtype) {
    return InvalidArgument("E-server-shape", piece, " is declared, but the value there is ",
                           DTypeName(whole->dtype()), whole->shape());
  }
  Param& param = NewParam(served);
  TakeOverMerge(served, param);
  if (!served.backups.empty()) DelayPolicy::TakeOver(served, program_);
  const Dim rows = piece.shape.rank() == 0 ? 1 : piece.shape[0];
  param.chunk_rows = ChunkRowsOf(served, chunk_limit);
  for (Dim begin = 0; begin < rows; begin += param.chunk_rows) {
    PENSTOCK_RETURN_IF_ERROR(
        AddChunk(served, *whole, begin, std::min(rows, begin + param.chunk_rows), param));
  }
  return OkStatus();
}

ChunkStore::Param& ChunkStore::NewParam(const roles::ServedParam& served) {
  const std::size_t first_queue = queue_count();
  Param& param = params_.emplace_back();
  param.piece = served.param;
  param.start = served.start;
  param.rows = served.rows;
  param.compression = served.compression;
  param.addends = static_cast<int>(served.grads.size());
  param.block = served.block;
  param.measure_block = served.measure_block;
  param.clips = served.clips;
  param.first_queue = first_queue;
  return param;
}

// Whether a variable is in the server's scope, where others may read it.
bool ChunkStore::IsShared(const std::string& name) const {
  const Variable* shared = scope_.Find(name);
  return (shared != nullptr && shared->initialized()) || made_for_all_.contains(name);
}

// Removes the merge ops from the block if the store can merge the gradients itself. It leaves them if their
// result is shared.
void ChunkStore::TakeOverMerge(const roles::ServedParam& served, Param& param) {
  if (served.start || served.rows || !CanAdd(served.param.dtype)) return;
  const int block = served.measure_block < 0 ? served.block : served.measure_block;
  param.merge = FindMerge(program_, block, served.grads);
  if (!param.merge) return;
  if (IsShared(param.merge->output)) {
    param.merge.reset();
    return;
  }
  for (const OpId op : param.merge->replaces) program_.MutableBlock(block).Remove(op);
}

void ChunkStore::AddGradients(const roles::ServedParam& served, const std::optional<MergePlan>& merge,
                              Chunk& chunk) {
  if (merge) {
    chunk.sum = chunk.scope->FindOrCreate(merge->output);
    return;
  }
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

// A chunk keeps what its mode needs; most modes need nothing.
Status ChunkStore::AddPolicy(const roles::ServedParam& served, Chunk& chunk) const {
  if (!served.backups.empty()) {
    PENSTOCK_ASSIGN_OR_RETURN(chunk.policy, DelayPolicy::Make(served, *chunk.scope, chunk.param));
  } else if (served.delta && served.rows) {
    chunk.policy = std::make_unique<GeoPolicy>(served.param.shape[0], facts_.trainers);
  }
  return OkStatus();
}

// Notes a variable that the update of a param uses and that lasts from one update to the next.
void ChunkStore::NoteForSave(const std::string& name, bool written, Param& param) const {
  const auto is_it = [&](const roles::ServedParam& served) { return served.param.name == name; };
  if (written) {
    param.state.push_back(name);
  } else if (std::ranges::none_of(facts_.params, is_it)) {
    param.constants.push_back(name);
  }
}

Status ChunkStore::AddChunk(const roles::ServedParam& served, const Tensor& whole, Dim begin, Dim end,
                            Param& param) {
  auto chunk = std::make_unique<Chunk>();
  chunk->scope = std::make_unique<Scope>(&scope_);
  const bool cut = end - begin != (served.param.shape.rank() == 0 ? 1 : served.param.shape[0]);
  chunk->param = cut ? whole.Rows(begin, end) : whole;
  AddGradients(served, param.merge, *chunk);
  if (served.start) {
    param.chunks.push_back(std::move(chunk));
    return OkStatus();
  }
  if (!served.backups.empty()) DelayPolicy::Declare(served, *chunk->scope);
  if (served.measure_block >= 0) AddMeasures(served.measure_block, *chunk);
  for (const auto& [name, written] : NamesOf(program_, {served.measure_block, served.block})) {
    if (chunk->scope->FindLocal(name) != nullptr) continue;
    if (made_for_all_.contains(name)) continue;  // found in the server's scope, once it is made
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
    if (begin == 0) NoteForSave(name, written, param);
    if (tensor->shape() == served.param.shape) {
      Variable* seen = shared;  // an uncut piece is updated in place
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
  PENSTOCK_RETURN_IF_ERROR(AddPolicy(served, *chunk));
  param.chunks.push_back(std::move(chunk));
  return OkStatus();
}

Status ChunkStore::RequireMeans() const {
  for (const Param& param : params_) {
    if (param.start || (param.merge && param.merge->factor == MeanOf(facts_.trainers))) continue;
    return Unimplemented(
        "E-server-backup", "the update of ", param.piece.name, " on pserver ", facts_.address,
        param.rows ? " merges gradients of rows" : " does not begin with the mean of the trainers' gradients",
        ", which backup_trainers does not support; transpile without it");
  }
  return OkStatus();
}

// By what the update multiplies the sum of the gradients.
std::optional<float> ChunkStore::FactorOf(const Param& param) const {
  if (param.row_update) return param.row_update->factor;
  if (param.merge) return param.merge->factor;
  const auto served = std::ranges::find(facts_.params, param.piece.name,
                                        [](const roles::ServedParam& each) { return each.param.name; });
  const std::optional<MergePlan> merge = FindMerge(program_, param.block, served->grads);
  return param.rows && merge ? merge->factor : std::nullopt;
}

Status ChunkStore::RequireLiveMeans() const {
  for (const Param& param : params_) {
    if (param.start) continue;
    if (FactorOf(param) == MeanOf(facts_.trainers)) continue;
    return Unimplemented("E-server-shrink", "the update of ", param.piece.name, " on pserver ",
                         facts_.address, " does not begin with a mean of gradients that the server computes")
        .With("on_trainer_loss=shrink needs it; use wait or abort");
  }
  return OkStatus();
}

MachineConfig::Param ChunkStore::ShapeOf(int number) const {
  const Param& param = params_[static_cast<std::size_t>(number)];
  MachineConfig::Param shape;
  shape.name = param.piece.name;
  shape.start = param.start;
  shape.clips = param.clips;
  shape.is_key = param.is_key;
  shape.turns = param.turns;
  shape.by_id = param.is_key && param.by_id;
  shape.compressible = param.is_key && !param.rows && param.piece.dtype == DType::kFp32;
  if (param.rows) {
    shape.pushed_row_bytes = sizeof(std::int64_t) + static_cast<std::size_t>(param.piece.shape.RowWidth()) *
                                                        SizeOf(param.piece.dtype);
  }
  for (const auto& chunk : param.chunks) {
    shape.bytes_of_chunks.push_back(chunk->param.bytes());
    if (param.compression.none()) continue;
    shape.compressed_bytes.push_back(static_cast<std::size_t>(param.compression.Bytes(chunk->param.count())));
  }
  return shape;
}

std::vector<MachineConfig::Param> ChunkStore::Shapes() const {
  std::vector<MachineConfig::Param> shapes;
  for (std::size_t p = 0; p < params_.size(); ++p) shapes.push_back(ShapeOf(static_cast<int>(p)));
  return shapes;
}

Status ChunkStore::Merge(const MergeAction& merge) {
  if (merge.initial) return SetInitial(merge);
  Chunk& chunk = At(merge.param, merge.chunk);
  const Param& param = params_[static_cast<std::size_t>(merge.param)];
  chunk.largest = std::max(chunk.largest, merge.largest);
  chunk.mean_of = param.is_key ? 0 : merge.mean_of;  // keys are sums
  if (param.start) {
    Place(merge.parts, chunk.param);
    return OkStatus();
  }
  if (param.rows) {
    return MergeRows(merge, GradientOf(chunk, merge.trainer).As<SelectedRows>());
  }
  chunk.policy->Merge(merge.trainer);
  return MergeTensor(merge, param, chunk);
}

Status ChunkStore::MergeTensor(const MergeAction& merge, const Param& param, Chunk& chunk) {
  const Compression how = merge.threshold > 0
                              ? Compression{.kind = Compression::Kind::kTwoBit, .threshold = merge.threshold}
                              : param.compression;
  if (!how.none() && !merge.parts.empty()) {
    MergeAction expanded = merge;
    Tensor whole = pool_.Make(chunk.param.dtype(), chunk.param.shape());
    PENSTOCK_RETURN_IF_ERROR(protocol::Expand(how, merge.parts, whole.Span<float>()));
    expanded.parts = {Payload::Of(whole, 0, whole.bytes())};
    return MergeExpanded(expanded, param, chunk);
  }
  return MergeExpanded(merge, param, chunk);
}

Status ChunkStore::MergeExpanded(const MergeAction& merge, const Param& param, Chunk& chunk) {
  if (param.merge) {
    AddToSum(merge, param, chunk);
    return OkStatus();
  }
  Tensor& gradient = GradientOf(chunk, merge.trainer).As<Tensor>();
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

// The first gradient stays in received memory until the second arrives; then each is read once, and the sum
// is written once.
void ChunkStore::AddToSum(const MergeAction& merge, const Param& param, Chunk& chunk) {
  const int all = merge.of == 0 ? param.addends : merge.of;
  const bool last = ++chunk.merged == all;
  if (chunk.merged == 1 && !last) {
    chunk.first = merge.parts;
    return;
  }
  Tensor& sum = chunk.sum->As<Tensor>();
  if (!sum.initialized()) sum = pool_.Make(chunk.param.dtype(), chunk.param.shape());
  Addition addition{.first = chunk.merged == 1, .to = chunk.first ? &*chunk.first : nullptr};
  if (last) addition.factor = all == param.addends ? param.merge->factor : std::optional(MeanOf(all));
  if (last && chunk.mean_of > 0) addition.factor = MeanOf(chunk.mean_of);
  AddGradient(merge.parts, addition, sum);
  chunk.first.reset();
}

Status ChunkStore::Run(const RunAction& run, BlockRunner& runner) {
  if (run.param < 0) {
    if (run.counts >= 0) PENSTOCK_RETURN_IF_ERROR(CountStep(run.counts));
    return rates_.Run(runner, program_, facts_.lr_block, scope_);
  }
  Chunk& chunk = At(run.param, run.chunk);
  Param& param = params_[static_cast<std::size_t>(run.param)];
  CopyCut(run.param, run.chunk);
  Status fetched = FetchListed(param, chunk);
  if (fetched.ok() && keeps_versions_) fetched = KeepVersion(param, chunk);
  if (param.rows && !param.row_update && chunk.mean_of > 0) ScaleRows(param, chunk);
  Status status = !fetched.ok()                ? std::move(fetched)
                  : param.key_table != nullptr ? UpdateKeyTable(param, chunk)
                  : param.is_key               ? UpdateKey(param, chunk, runner)
                  : param.by_id                ? UpdateTable(param, chunk, runner)
                                : chunk.update.Run(runner, program_, param.block, *chunk.scope);
  if (!status.ok()) {
    return std::move(status).With(StrCat("in the update of ", param.piece.name, " for step ", run.step,
                                         " on pserver ", facts_.address));
  }
  if (chunk.policy->NotesRows()) chunk.policy->Updated(chunk.grads.front()->As<SelectedRows>().rows);
  ++chunk.version;
  chunk.merged = 0;
  if (chunk.sum != nullptr) chunk.sum->As<Tensor>() = Tensor();
  // A runner may have put an output into a new buffer; the whole variable still has the old one.
  for (View& view : chunk.views) {
    Tensor& now = view.variable->As<Tensor>();
    if (now.raw() == view.rows.raw()) continue;
    view.rows.CopyFrom(now);
    now = view.rows;
  }
  return OkStatus();
}

void ChunkStore::KeepVersions() {
  keeps_versions_ = true;
  for (const Param& param : params_) {
    for (const auto& chunk : param.chunks) {
      if (chunk->table != nullptr) chunk->table->KeepLast();
    }
  }
}

// Before an update. The copy that trainers got is kept; rows are copied if the update may change them.
Status ChunkStore::KeepVersion(const Param& param, Chunk& chunk) {
  if (chunk.table == nullptr) {
    const bool is_there = chunk.published != nullptr && chunk.published_version == chunk.version;
    chunk.kept = is_there ? std::exchange(chunk.published, nullptr)
                          : Published::Copy(chunk.param, {.part_bytes = part_bytes_}, pool_);
    return OkStatus();
  }
  std::vector<std::int64_t> ids;
  for (const auto& grad : chunk.grads) {
    const auto& rows = grad->As<SelectedRows>().rows;
    ids.insert(ids.end(), rows.begin(), rows.end());
  }
  if (chunk.table->has_policy() && chunk.table->has_cold_rows()) {
    table::RowCopy leaving = chunk.table->CopyLeaving();
    PENSTOCK_RETURN_IF_ERROR(leaving.status);
    chunk.kept_rows.emplace(std::move(ids), *chunk.table, RowBytes(param.piece));
    chunk.kept_rows->Add(std::move(leaving.rows));
    return OkStatus();
  }
  const bool by_rows = param.row_update || param.key_table != nullptr;
  if (!by_rows || chunk.table->has_policy()) {  // every row may change
    table::RowCopy stored = chunk.table->BeginCopy();
    chunk.table->CopyRows(stored, chunk.table->row_count());
    ids.insert(ids.end(), stored.rows.rows.begin(), stored.rows.rows.end());
  }
  chunk.kept_rows.emplace(std::move(ids), *chunk.table, RowBytes(param.piece));
  return OkStatus();
}

Status ChunkStore::CountStep(int trainer) {
  const std::string& name = facts_.counters[static_cast<std::size_t>(trainer)];
  Variable* counter = scope_.Find(name);
  Tensor* steps = counter == nullptr ? nullptr : counter->If<Tensor>();
  if (steps == nullptr || !steps->initialized() || steps->dtype() != DType::kInt64 || steps->count() != 1) {
    return FailedPrecondition("E-server-startup", name, ", which counts the steps of trainer ", trainer,
                              ", has no value on this pserver; run its startup program first");
  }
  ++steps->Data<std::int64_t>()[0];
  return OkStatus();
}

std::shared_ptr<const Published> ChunkStore::Publish(int param, int chunk, std::optional<std::uint64_t> asked,
                                                     int trainer, bool checksums) {
  Chunk& c = At(param, chunk);
  const Published::Way way{.part_bytes = part_bytes_, .checksums = checksums};
  const std::uint64_t version = asked.value_or(c.version);
  if (params_[static_cast<std::size_t>(param)].start) {  // never written again
    if (c.published == nullptr) c.published = Published::Share(c.param, way);
    return c.published;
  }
  if (c.kept != nullptr && version + 1 == c.version) return c.kept;
  if (c.published == nullptr || c.published_version != version) {
    if (version != c.version) return nullptr;
    c.published.reset();  // the new copy may reuse its memory
    const bool replaced = params_[static_cast<std::size_t>(param)].is_key && c.updater == nullptr;
    c.published = replaced ? Published::Share(c.param, way) : Published::Copy(c.param, way, pool_);
    c.published_version = version;
    c.published_to.clear();
  }
  c.published_to.insert(trainer);
  std::shared_ptr<const Published> published = c.published;
  const bool all_have_it = c.published_to.size() == static_cast<std::size_t>(facts_.trainers);
  if (all_have_it && !keeps_versions_) c.published.reset();
  return published;
}

ChunkStore::Newest ChunkStore::PublishNewest(int param, int chunk, int trainer, std::uint64_t version,
                                             bool checksums) {
  Chunk& c = At(param, chunk);
  if (const auto earlier = c.policy->Read(trainer, version, c.param, c.version)) {
    const Published::Way way{.part_bytes = part_bytes_, .checksums = checksums};
    return {Published::Copy(*earlier->value, way, pool_), earlier->updates};
  }
  return {Publish(param, chunk, std::nullopt, trainer, checksums), c.version};
}

}  // namespace penstock::pserver
