#include "operators/common/ring.h"

#include <array>
#include <charconv>
#include <memory>
#include <utility>

#include "framework/base/hash.h"
#include "framework/roles/collective_views.h"
#include "operators/common/ring_sites.h"

namespace penstock {
namespace {

// Kept for the other ops of the block.
std::string_view LineOf(const KernelSetup& k, CollectiveRings& rings) {
  if (k.site().program == nullptr) return {};
  const auto* known = static_cast<const RingSites*>(rings.sites().get());
  if (known == nullptr || known->Find(k.op()) == nullptr) {
    auto made = std::make_unique<RingSites>(k.site().program->block(k.site().block));
    known = made.get();
    rings.sites() = std::move(made);
  }
  const std::string_view* line = known->Find(k.op());
  return line == nullptr ? std::string_view() : *line;
}

}  // namespace

Result<CollectiveRings*> RequireRings(const KernelSetup& k) {
  if (k.services().rings != nullptr) return k.services().rings;
  return FailedPrecondition("E-collective-no-rings", k.op().type(),
                            ": this executor has no rings of ranks; run the program as a rank of a job");
}

Status RingUse::Prepare(const KernelSetup& k, Order order) {
  PENSTOCK_ASSIGN_OR_RETURN(rings_, RequireRings(k));
  program_ = k.site().program;
  ring_ = roles::CollectiveView(k.op()).ring();
  op_ = k.op().type();
  const std::string& what = k.op().InputName("X");
  const std::uint64_t operation =
      program_ == nullptr ? 0 : Fnv1a64(StrCat(program_->content_id(), " ", op_, " ", what));
  runs_ = rings_->RunsOf(operation);
  tag_ = Fnv1a64(StrCat(op_, " ", what));
  label_ = StrCat(what, ", step ");
  label_begin_ = label_.size();
  const std::string_view line = LineOf(k, *rings_);
  where_ = line.empty() ? "" : StrCat(", ", line);
  const bool in_order =
      order == Order::kInPlace || k.op().GetOr<bool>("use_calc_stream", false) || !k.op().HasInputSlot("X");
  beside_ = !in_order && k.site().awaited;
  return OkStatus();
}

Status RingUse::Begin() {
  std::array<char, 24> step;
  const bool first = ++*runs_ == 1;  // ranks that have joined anew begin their programs again
  const auto end = std::to_chars(step.data(), step.data() + step.size(), *runs_).ptr;
  label_.resize(label_begin_);  // keeps its memory
  label_.append(step.data(), end).append(where_);
  if (begun_ && !first) return OkStatus();
  if (program_ != nullptr) PENSTOCK_RETURN_IF_ERROR(rings_->Begin(*program_, ring_, label_));
  // A ring that does not exist is an error of this op, not of the one that waits.
  PENSTOCK_ASSIGN_OR_RETURN([[maybe_unused]] CollectiveGroup* const group, rings_->Ring(ring_));
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

Status RequireElements(const KernelSetup& k, const Argument& argument) {
  if (ElementTypeOf(argument.dtype)) return OkStatus();
  return k.Error("ranks do not exchange elements of ", DTypeName(argument.dtype));
}

}  // namespace penstock
