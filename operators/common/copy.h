// Copies whole tensors, as reshape, assign and their gradients do.
#pragma once

#include "framework/op/kernel.h"
#include "operators/common/int_list.h"
#include "operators/common/parallel.h"
#include "operators/common/require_shape.h"

namespace penstock {

// Sets Out to the elements of X, in a shape that is known only in Run. If both are the same variable, only
// its shape changes.
inline void PutInShape(KernelRun& k, Operand x, Operand out, const Shape& shape) {
  if (x.index == out.index) {
    k[out] = k[x].Reshaped(shape);
    return;
  }
  MakeShaped(k[out], k[x].dtype(), shape);
  if (k[x].bytes() > 0 && k[x].raw() != k[out].raw()) k[out].CopyFrom(k[x]);
}

// Sets Out to the elements of X, in the shape that Out has. Out may be X.
inline void CopyElements(KernelRun& k, Operand x, Operand out) {
  const Tensor& from = k[x];
  if (from.bytes() > 0 && from.raw() != k[out].raw()) CopyBytes(k[out].raw(), from.raw(), from.bytes());
}

// A kernel that only copies, from slot `from` to slot `to`. It does nothing if the output is absent.
class CopyKernel : public Kernel {
 public:
  Status PrepareCopy(KernelSetup& k, const char* from, const char* to) {
    const Argument &x = k.Input(from), &out = k.Output(to);
    from_ = x;
    to_ = out;
    if (!to_) return OkStatus();
    if (x.dtype != out.dtype) {
      return k.Error("element type of ", from, " (", DTypeName(x.dtype), ") must be that of ", to, " (",
                     DTypeName(out.dtype), ")");
    }
    if (from_.index == to_.index) shape_ = out.shape;
    return RequireCount(k, from, out.shape.Count());
  }
  Status Run(KernelRun& k) override {
    if (!to_) return OkStatus();
    if (from_.index == to_.index) {
      k[to_] = k[from_].Reshaped(shape_);
    } else {
      CopyElements(k, from_, to_);
    }
    return OkStatus();
  }

 private:
  Operand from_, to_;
  Shape shape_;  // of Out, if it is the variable of X
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
