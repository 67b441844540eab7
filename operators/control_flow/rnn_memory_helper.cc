// rnn_memory_helper: a separate name for the value that a step passes to the next one.
#include <cstring>

#include "framework/op/op_registry.h"
#include "operators/common/copy.h"
#include "operators/common/fluid_attrs.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out = X. The op gives the value that a step passes to the next one a separate name.)";

// A state that no later step reads has no incoming gradient.
class MemoryHelperGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(dout_, dx_);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    Tensor& dx = k[dx_];
    if (!dx.initialized()) {
      return FailedPrecondition(
          "E-op-no-value", "rnn_memory_helper_grad: X has no value, so the shape of its gradient is unknown");
    }
    const Tensor* dout = dout_ ? k.Var(dout_).If<Tensor>() : nullptr;
    if (dout == nullptr || !dout->initialized()) {
      if (dx.bytes() > 0) std::memset(dx.raw(), 0, dx.bytes());
      return OkStatus();
    }
    if (dout->dtype() != dx.dtype() || dout->count() != dx.count()) {
      return InvalidArgument("E-op-gradient", "rnn_memory_helper_grad: Out@GRAD (", dout->shape(),
                             ") must have the shape of X (", dx.shape(), ")");
    }
    dx.CopyFrom(*dout);
    return OkStatus();
  }

 private:
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
};

}  // namespace

void RegisterRnnMemoryHelper(OpRegistry& ops) {
  ops.Add("rnn_memory_helper")
      .Doc("Gives the value that a step passes on a separate name.", kDoc)
      .Input("X", "any dense tensor", AnyType())
      .Output("Out", "equal to X", SameTypeAs("X"))
      .Attr("dtype", 5, kNoEffect)
      .InferShape(SameShape("X", "Out"))
      .KernelForAnyType<Cpu, CopyXKernel>()
      .Grad({.reads = {"X"}, .reads_outputs = {"Out"}, .yields = {"X"}})
      .GradDef()
      .ReadsOnlySome()
      .KernelForAnyType<Cpu, MemoryHelperGradKernel>();
}

}  // namespace penstock
