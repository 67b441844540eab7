// Copies of whole tensors: what reshape, assign and their gradients do to the elements.
#pragma once

#include <cstring>

#include "framework/op/kernel.h"
#include "operators/common/int_list.h"
#include "operators/common/require_shape.h"

namespace penstock {

// Out gets the elements of X in a shape that Run has found. If both are one variable, the tensor is only seen
// anew.
inline void PutInShape(KernelRun& k, const Operand& x, const Operand& out, const Shape& shape) {
  if (x.index == out.index) {
    k[out] = k[x].Reshaped(shape);
    return;
  }
  MakeShaped(k[out], x.dtype, shape);
  if (k[x].bytes() > 0) k[out].CopyFrom(k[x]);
}

// The same in the shape that Out has.
inline void CopyElements(KernelRun& k, const Operand& x, const Operand& out) {
  if (x.index == out.index) {
    k[out] = k[x].Reshaped(out.shape);
    return;
  }
  const Tensor& from = k[x];
  if (from.bytes() > 0) std::memcpy(k[out].raw(), from.raw(), from.bytes());
}

// A kernel that does just that, from slot `From` to slot `To`; nothing if nobody reads the output.
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
