// select_input: one of several variables, by number.
#include "framework/op/op_registry.h"
#include "operators/control_flow/not_run.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out = X[n], where Mask holds n in its one element. Put behind the two blocks of a condition, of which one has
run. Declared; not run yet.)";

// What is not alike in all of X is known only at run time.
Status InferSelect(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("X", "Out"));
  Shape shape = c.ShapeOf("X");
  for (int i = 1; i < c.InputCount("X"); ++i) {
    if (c.ShapeOf("X", i).rank() != shape.rank()) {
      return c.Error("X[", i, "] (", c.ShapeOf("X", i), ") must have the rank of X[0] (", shape, ")");
    }
    for (int d = 0; d < shape.rank(); ++d) {
      if (shape[d] != c.ShapeOf("X", i)[d]) shape.Set(d, kUnknownDim);
    }
  }
  return c.SetShape("Out", shape);
}

}  // namespace

void RegisterSelectInput(OpRegistry& ops) {
  ops.Add("select_input")
      .Doc("One of several variables, by number.", kDoc)
      .Input("X", "what is chosen from", AnyType(), Repeated())
      .Input("Mask", "one element: which", Only(DType::kInt32))
      .Output("Out", "the chosen one", SameTypeAs("X"))
      .InferShape(InferSelect)
      .KernelForAnyType<Cpu, BlockNotRunKernel>()
      .NoGrad();
}

}  // namespace penstock
