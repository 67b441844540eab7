// c_sync_calc_stream, c_sync_comm_stream: where computation and communication wait for each other.
#include "framework/op/op_registry.h"
#include "operators/collective/ring.h"

namespace penstock {
namespace {

constexpr char kCalcDoc[] = R"(
Waits until everything computed so far is there, so that a collective op may take X.)";

constexpr char kCommDoc[] = R"(
Waits until every collective op of ring `ring_id` so far has ended, so that computation may take what it
made.)";

// Where a backward reaches it is for whoever wrote the program to say: as Fluid, which refuses too.
Result<std::vector<Op>> RefuseGradient(const GradRequest& request) {
  return Unimplemented("E-op-no-gradient", request.forward.type(),
                       ": it has no gradient; set stop_gradient of ", request.forward.OutputName("Out"));
}

OpDef& Finish(OpDef& def) {
  return def.Input("X", "not read: orders the op", AnyType(), OfAnyKind())
      .Output("Out", "X itself", SameTypeAs("X"), OfAnyKind())
      .InferShape(SameShape("X", "Out"))
      .SideEffect()
      .GradMadeBy(RefuseGradient)
      .NotBuilt(kNoCommunicator);
}

}  // namespace

void RegisterStreamSync(OpRegistry& ops) {
  Finish(ops.Add("c_sync_calc_stream").Doc("Waits for the computation.", kCalcDoc));
  Finish(ops.Add("c_sync_comm_stream").Doc("Waits for the communication of one ring.", kCommDoc))
      .Attr("ring_id", 0, "which communicator", AtLeast(0));
}

}  // namespace penstock
