#include "executor/schedule/memory_need.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "executor/graph/explain.h"
#include "executor/graph/memory_plan.h"
#include "executor/graph/specialise.h"
#include "executor/schedule/planning_services.h"
#include "framework/base/strings.h"
#include "framework/op/tensor_desc.h"
#include "framework/runtime/rpc_client.h"

namespace penstock::exec {
namespace {

// The names of the variables that must be fed, in the order in which ops read them.
std::vector<std::string> FedNames(const Block& block) {
  std::vector<std::string> fed;
  std::set<std::string> settled;
  const auto settle = [&](const std::string& name) { return settled.insert(name).second; };
  for (const OpEntry& entry : block.ops()) {
    const OpRef& op = entry.op;
    for (const Slot& slot : op->inputs()) {
      for (const std::string& name : slot.args) {
        const Var* var = block.FindVar(name);
        const bool may_be_fed = var != nullptr && var->kind == VarKind::kTensor && !var->persistable;
        if (settle(name) && may_be_fed) fed.push_back(name);
      }
    }
    for (const Slot& slot : op->outputs()) {
      for (const std::string& name : slot.args) settle(name);
    }
  }
  return fed;
}

// The type of a feed.
Result<TensorDesc> FedInfo(const Var& var, const FedShapes& fed) {
  TensorDesc info = DescOf(var);
  if (const auto given = fed.shapes.find(var.name); given != fed.shapes.end()) {
    if (!given->second.IsKnown() || !Compatible(given->second, info.shape)) {
      return InvalidArgument("E-memory-feed", "memory: ", var.name, " : ", TypeText(var),
                             " cannot be fed a tensor of shape [", Join(given->second.dims(), ", "), "]");
    }
    info.shape = given->second;
    return info;
  }
  int unknown = 0;
  for (int i = 0; i < info.shape.rank(); ++i) {
    if (info.shape[i] >= 0) continue;
    info.shape.Set(i, fed.batch);
    ++unknown;
  }
  if (unknown > 1) {
    return InvalidArgument("E-memory-batch", "memory: ", var.name, " : ", TypeText(var), " has ", unknown,
                           " unknown extents, but the batch size stands for one; give its shape");
  }
  return info;
}

std::size_t BytesOf(const TensorDesc& info) {
  return IsKnownTensor(info) ? static_cast<std::size_t>(info.shape.Count()) * SizeOf(info.dtype) : 0;
}

}  // namespace

Result<std::shared_ptr<const Specialisation>> PlanForFeeds(const OpRegistry& ops, const Program& program,
                                                           const FedShapes& fed, const PlanOptions& options) {
  if (fed.batch <= 0)
    return InvalidArgument("E-memory-batch", "memory: the batch size must be positive, not ", fed.batch);
  const PlanningServices planning(ops);
  CompileRequest request;
  request.feeds = FedNames(program.main());
  for (const auto& [name, shape] : fed.shapes) {
    if (std::ranges::find(request.feeds, name) != request.feeds.end()) continue;
    return InvalidArgument("E-memory-feed", "memory: ", Quote(name), " is not fed; the program's feeds are ",
                           Join(request.feeds, ", "));
  }
  PENSTOCK_ASSIGN_OR_RETURN(std::shared_ptr<const CompiledBlock> block,
                            CompileBlock(ops, program, std::move(request)));
  std::vector<TensorDesc> known;
  for (const SlotInfo& slot : block->slots) known.push_back(DescOf(*slot.var));
  for (const int slot : block->feeds) {
    const auto s = static_cast<std::size_t>(slot);
    PENSTOCK_ASSIGN_OR_RETURN(known[s], FedInfo(*block->slots[s].var, fed));
  }
  PENSTOCK_ASSIGN_OR_RETURN(const Specialised made,
                            MakePlan(ops, std::move(block), std::move(known), planning.services(), options));
  return made.plan;
}

Result<MemoryNeed> MemoryNeedOf(const OpRegistry& ops, const Program& program, const FedShapes& fed) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<const Specialisation> made,
                            PlanForFeeds(ops, program, fed, PlanOptionsBySetting()));
  MemoryNeed need;
  for (const SlotInfo& slot : made->block->slots) {
    if (slot.home == Home::kScope) need.persistable += BytesOf(DescOf(*slot.var));
  }
  for (std::size_t k = 0; k < made->key.size(); ++k) {
    const SlotInfo& slot = made->block->slots[static_cast<std::size_t>(made->block->key[k])];
    if (slot.home == Home::kFeed) need.fed += BytesOf(made->key[k]);
  }
  for (const Place& place : made->places) {
    need.temporaries += place.own_buffer ? place.bytes : BytesInArena(place.bytes);
    if (place.own_buffer) need.own_buffers += place.bytes;
  }
  need.arena = made->arena_bytes;
  need.workspace = made->workspace_bytes;
  need.late_ops = made->steps_without_kernel;
  return need;
}

}  // namespace penstock::exec
