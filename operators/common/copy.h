// Copies whole tensors, as reshape, assign and their gradients do.
#pragma once

#include "framework/op/kernel.h"
#include "operators/common/int_list.h"
#include "operators/common/parallel.h"
#include "operators/common/require_shape.h"

namespace penstock {

// Sets Out to the elements of X, in a shape that is known only in Run. If both are the same variable, only
// its shape changes.
inline void PutInShape(KernelRun& k, const Operand& x, const Operand& out, const Shape& shape) {
  if (x.index == out.index) {
    k[out] = k[x].Reshaped(shape);
    return;
  }
  MakeShaped(k[out], x.dtype, shape);
  if (k[x].bytes() > 0 && k[x].raw() != k[out].raw()) k[out].CopyFrom(k[x]);
}

// Does the same in the shape that Out had in Prepare. Out may have the memory of X.
inline void CopyElements(KernelRun& k, const Operand& x, const Operand& out) {
  if (x.index == out.index) {
    k[out] = k[x].Reshaped(out.shape);
    return;
  }
  const Tensor& from = k[x];
  if (from.bytes() > 0 && from.raw() != k[out].raw()) CopyBytes(k[out].raw(), from.raw(), from.bytes());
}

// A kernel that only copies, from slot `from` to slot `to`. It does nothing if the output is absent.
class CopyKernel : public Kernel {
 public:
  Status PrepareCopy(KernelSetup& k, const char* from, const char* to) {
    from_ = k.Input(from);
    to_ = k.Output(to);
    if (!to_) return OkStatus();
    if (from_.dtype != to_.dtype) {
      return k.Error("element type of ", from, " (", DTypeName(from_.dtype), ") must be that of ", to, " (",
                     DTypeName(to_.dtype), ")");
    }
    return RequireCount(k, from, to_.shape.Count());
  }
  Status Run(KernelRun& k) override {
    if (to_) CopyElements(k, from_, to_);
    return OkStatus();
  }

 private:
  Operand from_, to_;
};

class CopyXKernel : public CopyKernel {
 public:
  Status Prepare(KernelSetup& k) override { return PrepareCopy(k, "X", "Out"); }
};
class CopyGradKernel : public CopyKernel {
 public:
  Status Prepare(KernelSetup& k) override { return PrepareCopy(k, "Out@GRAD", "X@GRAD"); }
};

}  // namespace penstock
