#include "executor/schedule/look_ahead.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "framework/roles/views.h"
#include "framework/runtime/batch_queue.h"

namespace penstock::exec {
namespace {

std::vector<std::string> Listed(const roles::Names& names) { return {names.begin(), names.end()}; }

// The batch that a reader's queue has next, if it is there.
std::optional<Batch> NextOf(const Variable* reader) {
  const Tensor* const numbers = reader == nullptr ? nullptr : reader->If<Tensor>();
  if (numbers == nullptr || !numbers->initialized() || numbers->dtype() != DType::kInt64 ||
      numbers->count() == 0)
    return std::nullopt;
  const std::shared_ptr<BatchQueue> queue = BatchQueue::Find(*numbers->Data<std::int64_t>());
  return queue == nullptr ? std::nullopt : queue->TryPeek();
}

}  // namespace

LookAhead::LookAhead(const CompiledBlock& block) : given_(block.feed_names) {
  for (const Peek& peek : block.peeks) {
    const Op& read = *block.instructions[static_cast<std::size_t>(peek.instruction)].op;
    Source source{.reader = block.slots[static_cast<std::size_t>(peek.source)].name, .variables = {}};
    for (const penstock::Slot& slot : read.outputs())
      source.variables.insert(source.variables.end(), slot.args.begin(), slot.args.end());
    given_.insert(given_.end(), source.variables.begin(), source.variables.end());
    sources_.push_back(std::move(source));
  }
  for (const Instruction& instruction : block.instructions) {
    const roles::Comm comm = roles::CommOf(*instruction.op);
    if (comm == roles::Comm::kPrefetch) AddPrefetch(block, *instruction.op);
    if (comm == roles::Comm::kLookup) AddLookup(*instruction.op);
  }
}

// Its ids are what split_ids makes of variables of the batch.
void LookAhead::AddPrefetch(const CompiledBlock& block, const Op& op) {
  const roles::PrefetchView prefetch(op);
  if (!prefetch.Validate().ok()) return;  // an error of the run
  const std::vector<std::string> asked = Listed(prefetch.ids());
  for (const Instruction& instruction : block.instructions) {
    if (roles::CommOf(*instruction.op) != roles::Comm::kSplit) continue;
    const roles::SplitView split(*instruction.op);
    if (split.cut() != roles::Cut::kById || Listed(split.pieces()) != asked) continue;
    Lookup lookup{.ids = Listed(instruction.op->Input("Ids")), .pieces = {}, .by_id = true};
    for (std::size_t i = 0; i < asked.size(); ++i)
      lookup.pieces.push_back({std::string(prefetch.addresses()[i]), asked[i]});
    lookup.trainer = roles::TrainerOf(op).value_or(0);
    return Add(std::move(lookup));
  }
}

void LookAhead::AddLookup(const Op& op) {
  const roles::LookupView view(op);
  if (!view.Validate().ok()) return;  // an error of the run
  Lookup lookup{.ids = Listed(view.ids()), .pieces = {}, .padding = view.padding()};
  std::int64_t end = 0;
  for (std::size_t i = 0; i < view.pieces().size(); ++i) {
    end += view.heights()[i];
    lookup.pieces.push_back({std::string(view.addresses()[i]), std::string(view.pieces()[i]), end});
  }
  lookup.trainer = roles::TrainerOf(op).value_or(0);
  Add(std::move(lookup));
}

void LookAhead::Add(Lookup lookup) {
  const auto is_given = [&](const std::string& name) {
    return std::ranges::find(given_, name) != given_.end();
  };
  if (!lookup.pieces.empty() && std::ranges::all_of(lookup.ids, is_given))
    lookups_.push_back(std::move(lookup));
}

Status LookAhead::Ask(RpcClient& rpc, const Next& next) {
  for (Lookup& lookup : lookups_) {
    std::vector<std::int64_t> ids;
    bool known = true;
    for (const std::string& name : lookup.ids) {
      const Tensor* const tensor = next(name);
      known = known && tensor != nullptr && tensor->initialized() && tensor->dtype() == DType::kInt64;
      if (!known) break;
      const auto more = tensor->Span<std::int64_t>();
      ids.insert(ids.end(), more.begin(), more.end());
    }
    if (known) PENSTOCK_RETURN_IF_ERROR(AskOne(rpc, lookup, std::move(ids)));
  }
  return OkStatus();
}

Status LookAhead::AskReaders(RpcClient& rpc, const Scope& scope) {
  std::vector<std::optional<Batch>> batches;
  for (const Source& source : sources_) batches.push_back(NextOf(scope.Find(source.reader)));
  return Ask(rpc, [&](const std::string& name) -> const Tensor* {
    for (std::size_t s = 0; s < sources_.size(); ++s) {
      const auto found = std::ranges::find(sources_[s].variables, name);
      const auto at = static_cast<std::size_t>(found - sources_[s].variables.begin());
      if (found != sources_[s].variables.end())
        return batches[s] && at < batches[s]->size() ? &(*batches[s])[at] : nullptr;
    }
    return nullptr;
  });
}

// As the ops ask: each id once, in ascending order. An id that no piece has is an error of the run.
Status LookAhead::AskOne(RpcClient& rpc, Lookup& lookup, std::vector<std::int64_t> ids) {
  if (lookup.padding != -1) std::erase(ids, lookup.padding);
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  if (!lookup.by_id && !ids.empty() && (ids.front() < 0 || ids.back() >= lookup.pieces.back().end))
    return OkStatus();
  std::vector<std::vector<std::int64_t>> of_piece(lookup.pieces.size());
  std::size_t piece = 0;
  for (const std::int64_t id : ids) {
    if (lookup.by_id) {
      of_piece[static_cast<std::size_t>(id) % of_piece.size()].push_back(id);
      continue;
    }
    while (id >= lookup.pieces[piece].end) ++piece;
    of_piece[piece].push_back(id - (piece == 0 ? 0 : lookup.pieces[piece - 1].end));
  }
  for (std::size_t i = 0; i < of_piece.size(); ++i) {
    if (of_piece[i].empty()) continue;
    Piece& asked = lookup.pieces[i];
    if (asked.handle.index < 0) {
      RemotePiece remote;
      remote.pserver = asked.pserver;
      remote.name = asked.name;
      remote.trainer_id = lookup.trainer;
      PENSTOCK_ASSIGN_OR_RETURN(asked.handle, rpc.DeclareRows(remote));
    }
    PENSTOCK_RETURN_IF_ERROR(rpc.PullRowsAhead(asked.handle, of_piece[i]));
  }
  return OkStatus();
}

}  // namespace penstock::exec
