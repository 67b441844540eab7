// delete_var: says where temporaries are read last.
#include "framework/op/op_registry.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
The variables X are not read behind this op. Fluid's executor frees them here. The executor of this project
knows where each temporary is read last and gives its memory to others by that: nothing is left to do here.)";

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
