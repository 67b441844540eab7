// delete_var: marks the last use of temporaries.
#include "framework/op/op_registry.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
No later op reads the variables X. Fluid's executor frees them here. The executor of this project knows the
last reader of each temporary and reuses its memory after that, so it checks this op and runs nothing for
it.)";

class DeleteVarKernel : public Kernel {
 public:
  Status Prepare(KernelSetup&) override { return OkStatus(); }
  Status Run(KernelRun&) override { return OkStatus(); }
};

}  // namespace

void RegisterDeleteVar(OpRegistry& ops) {
  ops.Add("delete_var")
      .Doc("Temporaries that nobody reads any more.", kDoc)
      .Input("X", "temporaries", AnyType(), Repeated() | OfAnyKind())
      .InferShape(OutputsAsDeclared())
      .NoGrad()
      .KernelForAnyType<Cpu, DeleteVarKernel>();
}

}  // namespace penstock
