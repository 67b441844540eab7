// conditional_block: a block that runs if a condition holds.
#include "framework/op/op_registry.h"
#include "operators/control_flow/not_run.h"
#include "operators/fluid_attrs.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Runs sub_block if Cond holds: with is_scalar_condition its one element, else if no variable of Cond is empty.
Input names what the block reads of the blocks around it, Out what it writes there; those keep their values
if it does not run. Scope holds the block's own variables for a gradient. Declared; not run yet.)";

}  // namespace

void RegisterConditionalBlock(OpRegistry& ops) {
  ops.Add("conditional_block")
      .Doc("Runs a block if a condition holds.", kDoc)
      .Input("Cond", "the condition", AnyType(), Optional() | Repeated())
      .Input("Input", "what the block reads from outside", AnyType(), Optional() | Repeated())
      .Output("Out", "what the block writes outside", AnyType(), Optional() | Repeated())
      .Output("Scope", "the block's own variables", AnyType(), Optional())
      .RequiredAttr("sub_block", AttrKind::kBlock, "the block")
      .Attr("is_scalar_condition", false, "whether Cond is one truth value")
      .Attr("skip_eager_deletion_vars", std::vector<std::string>(), kNoEffect)
      .InferShape(OutputsAsDeclared())
      .KernelForAnyType<Cpu, BlockNotRunKernel>()
      .SideEffect()
      .NoGrad();
}

}  // namespace penstock
