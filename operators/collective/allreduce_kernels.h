// The kernels of ops on a ring. Each rank runs them on its own tensor.
#pragma once

#include "operators/collective/rows_exchange.h"

namespace penstock {

// Out = X reduced over all ranks. X is a tensor, or, for a sum, selected rows.
class AllReduceKernel : public Kernel {
 public:
  explicit AllReduceKernel(Reduction reduction) : reduction_(reduction) {}
  Status Prepare(KernelSetup& k) override;
  Status Run(KernelRun& k) override;

 protected:
  Reduction reduction_;

 private:
  RingUse ring_;
  TypedOperand x_;
  Out<"Out"> out_;
  RowsExchange rows_;
};

class SumKernel : public AllReduceKernel {
 public:
  SumKernel() : AllReduceKernel(Reduction::kSum) {}
};
class MaxKernel : public AllReduceKernel {
 public:
  MaxKernel() : AllReduceKernel(Reduction::kMax) {}
};
class MinKernel : public AllReduceKernel {
 public:
  MinKernel() : AllReduceKernel(Reduction::kMin) {}
};
class ProductKernel : public AllReduceKernel {
 public:
  ProductKernel() : AllReduceKernel(Reduction::kProduct) {}
};
// The kernel of allreduce, which takes its reduction from attribute reduce_type.
class ChosenReductionKernel : public AllReduceKernel {
 public:
  ChosenReductionKernel() : AllReduceKernel(Reduction::kSum) {}
  Status Prepare(KernelSetup& k) override;
};

// Out = the Adasum of X over all ranks. Blocks until Out is complete.
class AdasumKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override;
  Status Run(KernelRun& k) override;

 private:
  RingUse ring_;
  In<"X"> x_;
  Out<"Out"> out_;
};

// Out = X of rank `root`.
class BroadcastKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override;
  Status Run(KernelRun& k) override;

 private:
  RingUse ring_;
  TypedOperand x_;
  Out<"Out"> out_;
  int root_ = 0;
  RowsExchange rows_;
};

// Out = the sum of X over all ranks on rank `root`, 0 elsewhere.
class BroadcastGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override;
  Status Run(KernelRun& k) override;

 private:
  RingUse ring_;
  In<"X"> x_;
  Out<"Out"> out_;
  int root_ = 0;
};

// GatherKernel: Out = the X of all ranks. ScatterKernel: Out = this rank's part of the sum of X over all
// ranks.
class GatherKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override;
  Status Run(KernelRun& k) override;

 private:
  RingUse ring_;
  In<"X"> x_;
  Out<"Out"> out_;
  int ranks_ = 1;
};
class ScatterKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override;
  Status Run(KernelRun& k) override;

 private:
  RingUse ring_;
  In<"X"> x_;
  Out<"Out"> out_;
  int ranks_ = 1;
};

}  // namespace penstock
