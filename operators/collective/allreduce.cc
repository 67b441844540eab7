// c_allreduce_sum, c_broadcast: all ranks end with the sum of their tensors, or with the tensor of one of
// them.
#include "framework/op/op_registry.h"
#include "operators/collective/ring.h"

namespace penstock {
namespace {

constexpr char kSumDoc[] = R"(
Out is the element-wise sum of X over all ranks of ring `ring_id`; every rank gets the same bytes. All ranks
call it in the same order on a ring. With use_calc_stream=false it runs beside the computation: a
c_sync_calc_stream before it waits for X, a c_sync_comm_stream after it for Out.)";

constexpr char kBroadcastDoc[] = R"(
Out is, on every rank of ring `ring_id`, the X of rank `root`. Streams as in c_allreduce_sum.)";

OpDef& OnRing(OpDef& def) {
  return def.Input("X", "this rank's tensor or selected rows", AnyType())
      .Output("Out", "shaped as X; usually X itself", SameTypeAs("X"))
      .Attr("ring_id", 0, "which communicator", AtLeast(0))
      .Attr("use_calc_stream", false, "whether it runs in the order of the computation")
      .InferShape(SameShape("X", "Out"))
      .SideEffect()
      .NoGrad();
}

}  // namespace

void RegisterAllreduce(OpRegistry& ops) {
  OnRing(ops.Add("c_allreduce_sum").Doc("The sum of a tensor over all ranks.", kSumDoc))
      .KernelForAnyType<Cpu, NoCommunicatorKernel>();
  OnRing(ops.Add("c_broadcast").Doc("Gives all ranks the tensor of one.", kBroadcastDoc))
      .Attr("root", 0, "the rank whose tensor it is", AtLeast(0))
      .KernelForAnyType<Cpu, NoCommunicatorKernel>();
}

}  // namespace penstock
