// gather_tree: the branches of a beam search, traced back from their ends.
#include <string>
#include <utility>

#include "framework/op/op_registry.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Ids[t, b, k] is the token of branch k at step t, and Parents[t, b, k] is the branch of step t - 1 that it
continues. Out[t, b, k] is the token at step t of the branch that ends as branch k at the last step:

Out[last, b, k] = Ids[last, b, k]     Out[t, b, k] = Ids[t, b, p(t, k)]
p(last - 1, k) = Parents[last, b, k]  p(t - 1, k) = Parents[t, b, p(t, k)])";

Status InferGatherTree(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("Ids", 3));
  if (!Compatible(c.ShapeOf("Parents"), c.ShapeOf("Ids")))
    return c.Error("shape of Parents (", c.ShapeOf("Parents"), ") must be that of Ids (", c.ShapeOf("Ids"),
                   ")");
  return c.SetShape("Out", c.ShapeOf("Ids"));
}

template <typename Device, typename T>
class GatherTreeKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(ids_, parents_, out_);
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    const T* const ids = std::as_const(k[ids_]).template Data<T>();
    const T* const parents = std::as_const(k[parents_]).template Data<T>();
    T* const out = k[out_].template Data<T>();
    const Dim steps = k[ids_].shape()[0], sources = k[ids_].shape()[1], branches = k[ids_].shape()[2];
    for (Dim source = 0; source < sources; ++source) {
      for (Dim branch = 0; branch < branches; ++branch) {
        Dim at = branch;
        for (Dim step = steps - 1; step >= 0; --step) {
          const Dim row = (step * sources + source) * branches;
          if (at < 0 || at >= branches)
            return InvalidArgument("E-op-index", "gather_tree: Parents names branch ", at, " of step ", step,
                                   "; it must be in [0, ", branches, ")");
          out[row + branch] = ids[row + at];
          at = parents[row + at];
        }
      }
    }
    return OkStatus();
  }

 private:
  In<"Ids"> ids_;
  In<"Parents"> parents_;
  Out<"Out"> out_;
};

}  // namespace

void RegisterGatherTree(OpRegistry& ops) {
  ops.Add("gather_tree")
      .Doc("Traces back the branches of a beam search from their ends.", kDoc)
      .Input("Ids", "tokens, [steps, sources, branches]", Integers())
      .Input("Parents", "the branch that each token continues", SameTypeAs("Ids"))
      .Output("Out", "the tokens of whole branches", SameTypeAs("Ids"), Apart())
      .InferShape(InferGatherTree)
      .Kernel<Cpu, GatherTreeKernel, std::int32_t, std::int64_t>()
      .NoGrad();
}

}  // namespace penstock
