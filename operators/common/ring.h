// What the collective kernels share: the ring that an op works on, and how an operation that it has started
// ends.
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

// Whether the next op of the block behind `op` that touches a variable of `op` is a c_sync_comm_stream of
// `ring`, so that what `op` starts may run beside the ops before that. Ops that order streams in place touch
// nothing; ops with blocks may touch everything. False if `op` is not the block's.
bool AwaitedBeforeUse(const Block& block, const Op& op, int ring);

class RingUse {
 public:
  enum class Order {
    kMayRunBeside,  // what the op starts may run beside the ops behind it
    kInPlace,       // the op waits
  };
  Status Prepare(const KernelSetup& k, Order order = Order::kMayRunBeside);
  // The ring's group; once a run. The first time, all ranks agree that they run the same program.
  Result<CollectiveGroup*> Open();
  CollectiveRings& rings() const { return *rings_; }
  CollectiveOptions options() const { return {.label = label_, .tag = tag_, .blocking = !beside_}; }
  // Reduces `values` in place, with others in one operation where they are small and may wait.
  Status AllReduce(const Elements& values, Reduction reduction);
  // Waits, unless a c_sync_comm_stream does so before anybody uses what is under way.
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
  std::uint64_t tag_ = 0, operation_ = 0;  // what is exchanged; by this op of this program
  std::string op_, what_, where_;          // "w@GRAD", ", train.py:12 in model"
  std::string label_;                      // of this run
};

// The elements of a tensor of a type that collectives move (Prepare asks RequireElements).
Elements ElementsOf(const Tensor& tensor);
Status RequireElements(const KernelSetup& k, const Operand& operand);

}  // namespace penstock
