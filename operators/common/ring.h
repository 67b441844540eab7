// Shared by the collective kernels: the ring on which an op works, and the completion of operations that it
// starts.
//
//   RingUse ring_;
//   PENSTOCK_RETURN_IF_ERROR(ring_.Prepare(k));                                     // Prepare
//   PENSTOCK_ASSIGN_OR_RETURN(CollectiveGroup* const group, ring_.Open());          // Run
//   return ring_.Finish(group->Broadcast(values, 0, ring_.options()));
#pragma once

#include <string>

#include "framework/ir/program.h"
#include "framework/op/kernel.h"
#include "framework/runtime/collective_rings.h"

namespace penstock {

// kFailedPrecondition E-collective-no-rings: the process has no rings.
Result<CollectiveRings*> RequireRings(const KernelSetup& k);

class RingUse {
 public:
  enum class Order {
    kMayRunBeside,  // the operation may overlap with the following ops
    kInPlace,       // the op waits for the operation
  };
  Status Prepare(const KernelSetup& k, Order order = Order::kMayRunBeside);
  // Returns the ring's group. Call it once per run. The first call checks that all ranks run the same
  // program.
  Result<CollectiveGroup*> Open();
  CollectiveRings& rings() const { return *rings_; }
  CollectiveOptions options() const { return {.label = label_, .tag = tag_, .blocking = !beside_}; }
  // Reduces `values` in place. Small tensors that may overlap with computation share one operation with
  // others.
  Status AllReduce(const Elements& values, Reduction reduction);
  // Waits for `started`, unless whoever runs the op does so before an op uses its variables.
  Status Finish(Completion started) const;
  Status Wait(const Completion& started) const { return rings_->Wait(started); }
  // kInvalidArgument E-collective-ranks: the op is for another number of ranks.
  Status RequireRanks(const CollectiveGroup& group, int ranks) const;

 private:
  Status Begin();

  CollectiveRings* rings_ = nullptr;
  const Program* program_ = nullptr;
  int ring_ = 0;
  bool beside_ = false;
  bool begun_ = false;
  std::uint64_t tag_ = 0;         // identifies the exchanged variable
  std::int64_t* runs_ = nullptr;  // of this op of this program, in all its compiled forms
  std::string op_, where_;        // ", train.py:12 in model"
  std::string label_;             // of this run: "w@GRAD, step 5, train.py:12 in model"
  std::size_t label_begin_ = 0;   // bytes of "w@GRAD, step "
};

// Returns the elements of a tensor. Its type must be one that collectives support; check it in Prepare with
// RequireElements.
Elements ElementsOf(const Tensor& tensor);
Status RequireElements(const KernelSetup& k, const Argument& argument);

}  // namespace penstock
