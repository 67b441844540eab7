// c_allreduce_sum, _max, _min, _prod, c_broadcast, c_allgather, c_reducescatter: reductions and exchanges of
// tensors over the ranks of a ring; allreduce and broadcast, Fluid's older forms on the first ring.
#include "framework/op/op_registry.h"
#include "operators/collective/allreduce_kernels.h"

namespace penstock {
namespace {

constexpr char kSumDoc[] = R"(
Out is the elementwise sum of X over all ranks of ring `ring_id`; every rank gets the same bytes. All ranks
must call the ops of a ring in the same order. With use_calc_stream=false, the operation overlaps with
computation if a c_sync_comm_stream of the ring comes before the next op that names X or Out; otherwise the op
waits. If X is selected rows, Out has the rows of all ranks, each once and in ascending order: each rank first
sums its values of a row, then these sums are added in rank order. Rows are gathered, unless gathering sends
more bytes than summing the dense tensor: for R rows of B bytes (of all ranks together, duplicates of a rank
counted once) in a tensor of H rows, if R * (B + 8) > 2 * H * (B + 1). Both ways give the same values. The
gradient is the same sum of Out's gradients.)";

constexpr char kBroadcastDoc[] = R"(
On every rank of ring `ring_id`, Out is the X of rank `root`. Streams as in c_allreduce_sum. The gradient,
which Fluid does not have, is the sum of all ranks' gradients on rank `root`, and 0 on the others.)";

constexpr char kBroadcastGradDoc[] = R"(
On rank `root` of ring `ring_id`, Out is the elementwise sum of X over all ranks; on the others it is 0.)";

constexpr char kMaxDoc[] = R"(
Out is the element-wise maximum of X over all ranks of ring `ring_id`. Streams as in c_allreduce_sum.)";

constexpr char kMinDoc[] = R"(
Out is the element-wise minimum of X over all ranks of ring `ring_id`. Streams as in c_allreduce_sum.)";

constexpr char kProductDoc[] = R"(
Out is the element-wise product of X over all ranks of ring `ring_id`. Streams as in c_allreduce_sum.)";

constexpr char kAdasumDoc[] = R"(
Out is the Adasum of X over all ranks of ring `ring_id`; the number of ranks must be a power of two. Two
tensors a and b are combined to (1 - a.b / 2|a|^2) a + (1 - a.b / 2|b|^2) b: their sum if they are orthogonal,
their mean if they are equal. More tensors are combined in pairs, in rank order. Every rank gets the same
bytes. The op waits for the operation. Fluid does not have this op. Source: Maleki et al., Scaling Distributed
Training with Adaptive Summation (2020).)";

constexpr char kGatherDoc[] = R"(
Out holds the rows of rank 0's X, then those of rank 1's, and so on: nranks times as many as X. Streams as in
c_allreduce_sum. The gradient is a c_reducescatter.)";

constexpr char kScatterDoc[] = R"(
The sum of X over all ranks is split into nranks parts by rows; on rank r, Out is part r. Streams as in
c_allreduce_sum. The gradient is a c_allgather; Fluid does not have it.)";

constexpr char kOldReduceDoc[] = R"(
Out is X reduced over all ranks of the first ring: reduce_type 0 is the sum, 1 the product, 2 the maximum, 3
the minimum. With sync_mode the op waits for the operation.)";

constexpr char kOldBroadcastDoc[] = R"(
On every rank of the first ring, Out is the X of rank `root`. With sync_mode the op waits for the
operation.)";

// Rows of all ranks, or one rank's share of them.
Status InferGather(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("X", 0));
  const Dim rows = c.ShapeOf("X")[0];
  return c.SetShape("Out",
                    c.ShapeOf("X").WithRows(rows == kUnknownDim ? rows : rows * c.Attr<int>("nranks")));
}

Status InferScatter(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("X", 0));
  const Dim rows = c.ShapeOf("X")[0], ranks = c.Attr<int>("nranks");
  if (rows == kUnknownDim) return c.SetShape("Out", c.ShapeOf("X"));
  if (rows % ranks != 0) return c.Error("rows of X (", rows, ") must be divisible by nranks (", ranks, ")");
  return c.SetShape("Out", c.ShapeOf("X").WithRows(rows / ranks));
}

OpDef& OnFirstRing(OpDef& def) {
  return def.Input("X", "this rank's tensor", AnyType())
      .Output("Out", "shaped as X", SameTypeAs("X"))
      .Attr("sync_mode", false, "whether the computation waits for it")
      .InferShape(SameShape("X", "Out"))
      .Affects({Effect::kRing})
      .NoGrad();
}

// The gradient is another op of the same ring, from Out's gradient to X's.
GradMaker OnTheSameRing(const char* type) {
  return [type](const GradRequest& request) -> Result<std::vector<Op>> {
    const std::string dx = request.grad_of(request.forward.InputName("X"));
    if (dx.empty()) return std::vector<Op>();
    Op grad(type);
    grad.AddInput("X", {request.grad_of(request.forward.OutputName("Out"))}).AddOutput("Out", {dx});
    for (const NamedAttr& attr : request.forward.attrs()) grad.Set(attr.name, attr.value);
    return std::vector<Op>{std::move(grad)};
  };
}

OpDef& OnRing(OpDef& def) {
  return def.Input("X", "this rank's tensor or selected rows", AnyType(), TensorOrRows())
      .Output("Out", "shaped as X; usually X itself", SameTypeAs("X"), TensorOrRows())
      .Attr("ring_id", 0, "which communicator", AtLeast(0))
      .Attr("use_calc_stream", false, "whether it runs in the order of the computation")
      .InferShape(SameShape("X", "Out"))
      .Affects({Effect::kRing});
}

}  // namespace

void RegisterAllreduce(OpRegistry& ops) {
  OnRing(ops.Add("c_allreduce_sum").Doc("The sum of a tensor over all ranks.", kSumDoc))
      .KernelForAnyType<Cpu, SumKernel>()
      .GradMadeBy(OnTheSameRing("c_allreduce_sum"));
  OnRing(ops.Add("c_allreduce_adasum").Doc("The Adasum of a tensor over all ranks.", kAdasumDoc))
      .KernelForAnyType<Cpu, AdasumKernel>()
      .NoGrad();
  OnRing(ops.Add("c_broadcast").Doc("Gives all ranks the tensor of one.", kBroadcastDoc))
      .Attr("root", 0, "the rank whose tensor it is", AtLeast(0))
      .KernelForAnyType<Cpu, BroadcastKernel>()
      .GradMadeBy(OnTheSameRing("c_broadcast_grad"));
  OnRing(ops.Add("c_broadcast_grad")
             .Doc("Gives the rank whose tensor all got the sum of what they make of it.", kBroadcastGradDoc))
      .Attr("root", 0, "the rank whose tensor it was", AtLeast(0))
      .KernelForAnyType<Cpu, BroadcastGradKernel>()
      .NoGrad();
  OnRing(ops.Add("c_allreduce_min").Doc("The minimum of a tensor over all ranks.", kMinDoc))
      .KernelForAnyType<Cpu, MinKernel>()
      .NoGrad();
  OnRing(ops.Add("c_allreduce_prod").Doc("The product of a tensor over all ranks.", kProductDoc))
      .KernelForAnyType<Cpu, ProductKernel>()
      .NoGrad();
  OnRing(ops.Add("c_allreduce_max").Doc("The maximum of a tensor over all ranks.", kMaxDoc))
      .KernelForAnyType<Cpu, MaxKernel>()
      .NoGrad();
  OnRing(ops.Add("c_allgather").Doc("Gives all ranks the tensors of all.", kGatherDoc))
      .RequiredAttr("nranks", AttrKind::kInt, "how many ranks there are", AtLeast(1))
      .InferShape(InferGather)
      .KernelForAnyType<Cpu, GatherKernel>()
      .GradMadeBy(OnTheSameRing("c_reducescatter"));
  OnRing(ops.Add("c_reducescatter").Doc("Gives each rank its part of the sum.", kScatterDoc))
      .Attr("nranks", 1, "how many ranks there are", AtLeast(1))
      .InferShape(InferScatter)
      .KernelForAnyType<Cpu, ScatterKernel>()
      .GradMadeBy(OnTheSameRing("c_allgather"));
  OnFirstRing(ops.Add("allreduce").Doc("A tensor, reduced over all ranks.", kOldReduceDoc))
      .Attr("reduce_type", 0, "how it is reduced", AtLeast(0))
      .KernelForAnyType<Cpu, ChosenReductionKernel>();
  OnFirstRing(ops.Add("broadcast").Doc("Gives all ranks the tensor of one.", kOldBroadcastDoc))
      .Attr("root", 0, "the rank whose tensor it is", AtLeast(0))
      .KernelForAnyType<Cpu, BroadcastKernel>();
}

}  // namespace penstock
