#include "operators/common/ring.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "framework/base/hash.h"
#include "framework/roles/collective_views.h"

namespace penstock {
namespace {

bool OrdersStreamsInPlace(const Op& op) {
  return (op.type() == "c_sync_comm_stream" || op.type() == "c_sync_calc_stream") &&
         op.InputName("X") == op.OutputName("Out");
}

bool Names(const std::vector<std::string>& names, const std::string& name) {
  return !name.empty() && std::ranges::find(names, name) != names.end();
}

// The line that led to `op`: its own, or of the op that made what it takes. Passes' ops have none.
std::string UsersLine(const Block& block, const Op& op) {
  if (!op.location().empty()) return op.location();
  const auto& ops = block.ops();
  auto at = std::ranges::find_if(ops, [&](const OpEntry& entry) { return entry.op.get() == &op; });
  if (at == ops.end()) return "";
  std::string name = op.InputName("X");
  while (at != ops.begin()) {
    const Op& before = *(--at)->op;
    if (!Names(before.OutputNames(), name)) continue;
    if (!before.location().empty()) return before.location();
    if (const std::vector<std::string> read = before.InputNames(); !read.empty()) name = read.front();
  }
  return "";
}

}  // namespace

Result<CollectiveRings*> RequireRings(const KernelSetup& k) {
  if (k.services().rings != nullptr) return k.services().rings;
  return FailedPrecondition("E-collective-no-rings", k.op().type(),
                            ": this executor has no rings of ranks; run the program as a rank of a job");
}

bool AwaitedBeforeUse(const Block& block, const Op& op, int ring) {
  const auto& ops = block.ops();
  auto at = std::ranges::find_if(ops, [&](const OpEntry& entry) { return entry.op.get() == &op; });
  if (at == ops.end()) return false;
  for (++at; at != ops.end(); ++at) {
    const Op& next = *at->op;
    if (next.type() == "c_sync_comm_stream" && roles::CollectiveView(next).ring() == ring) return true;
    if (OrdersStreamsInPlace(next)) continue;
    if (next.may_name_blocks()) return false;
    const std::vector<std::string> read = next.InputNames(), written = next.OutputNames();
    for (const std::string& name : {op.InputName("X"), op.OutputName("Out")}) {
      if (Names(read, name) || Names(written, name)) return false;
    }
  }
  return false;
}

Status RingUse::Prepare(const KernelSetup& k, Order order) {
  PENSTOCK_ASSIGN_OR_RETURN(rings_, RequireRings(k));
  program_ = k.site().program;
  ring_ = roles::CollectiveView(k.op()).ring();
  op_ = k.op().type();
  what_ = k.op().InputName("X");
  tag_ = Fnv1a64(StrCat(op_, " ", what_));
  if (program_ != nullptr) {
    operation_ = Fnv1a64(StrCat(program_->content_id(), " ", op_, " ", what_));
    const std::string line = UsersLine(program_->block(k.site().block), k.op());
    if (!line.empty()) where_ = StrCat(", ", line);
  }
  const bool in_order =
      order == Order::kInPlace || k.op().GetOr<bool>("use_calc_stream", false) || !k.op().HasInputSlot("X");
  beside_ =
      !in_order && program_ != nullptr && AwaitedBeforeUse(program_->block(k.site().block), k.op(), ring_);
  return OkStatus();
}

Status RingUse::Begin() {
  label_ = StrCat(what_, ", step ", rings_->CountRun(operation_), where_);
  if (!begun_ && program_ != nullptr) PENSTOCK_RETURN_IF_ERROR(rings_->Begin(*program_, ring_, label_));
  begun_ = true;
  return OkStatus();
}

Result<CollectiveGroup*> RingUse::Open() {
  PENSTOCK_RETURN_IF_ERROR(Begin());
  PENSTOCK_RETURN_IF_ERROR(rings_->Flush(ring_));
  return rings_->Ring(ring_);
}

Status RingUse::AllReduce(const Elements& values, Reduction reduction) {
  if (beside_) {
    PENSTOCK_RETURN_IF_ERROR(Begin());
    return rings_->ReduceBeside(ring_, values, reduction, options());
  }
  PENSTOCK_ASSIGN_OR_RETURN(CollectiveGroup* const group, Open());
  return Wait(group->AllReduce(values, reduction, options()));
}

Status RingUse::Finish(Completion started) const {
  if (!beside_) return rings_->Wait(started);
  rings_->Keep(ring_, std::move(started));
  return OkStatus();
}

Status RingUse::RequireRanks(const CollectiveGroup& group, int ranks) const {
  if (group.size() == ranks) return OkStatus();
  return InvalidArgument("E-collective-ranks", op_, ": nranks is ", ranks, ", but ring ", ring_, " has ",
                         group.size(), " ranks");
}

Elements ElementsOf(const Tensor& tensor) {
  return {tensor.raw(), tensor.count(), ElementTypeOf(tensor.dtype()).value_or(ElementType::kUInt8)};
}

Status RequireElements(const KernelSetup& k, const Operand& operand) {
  if (ElementTypeOf(operand.dtype)) return OkStatus();
  return k.Error("ranks do not exchange elements of ", DTypeName(operand.dtype));
}

}  // namespace penstock
