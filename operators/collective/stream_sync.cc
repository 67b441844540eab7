// c_sync_calc_stream, c_sync_comm_stream: where computation and communication wait for each other.
#include "framework/op/op_registry.h"
#include "operators/common/ring.h"

namespace penstock {
namespace {

constexpr char kCalcDoc[] = R"(
Waits until all earlier computation is complete, so that a collective op may read X.)";

constexpr char kCommDoc[] = R"(
Waits until all earlier collective ops of ring `ring_id` have completed, so that computation may read their
results.)";

// Where a backward reaches it is for whoever wrote the program to say: as Fluid, which refuses too.
Result<std::vector<Op>> RefuseGradient(const GradRequest& request) {
  return Unimplemented("E-op-no-gradient", request.forward.type(),
                       ": it has no gradient; set stop_gradient of ", request.forward.OutputName("Out"));
}

void CopyWhereApart(KernelRun& k, Operand x, Operand out) {
  if (!x || !out || x.index == out.index) return;
  if (k.Var(x).Is<Tensor>()) {
    k[out].CopyFrom(k[x]);
  } else if (const auto* rows = k.Var(x).If<SelectedRows>()) {
    k.Var(out).As<SelectedRows>() = {rows->rows, rows->height, rows->value.Clone(), rows->start};
  }
}

// Computation is done when the next op runs.
class AwaitComputationKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    CopyWhereApart(k, x_, out_);
    return OkStatus();
  }

 private:
  In<"X"> x_;
  Out<"Out"> out_;
};

class AwaitRingKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(rings_, RequireRings(k));
    ring_ = k.Attr<int>("ring_id");
    k.Bind(x_, out_);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(rings_->Await(ring_));
    CopyWhereApart(k, x_, out_);
    return OkStatus();
  }

 private:
  CollectiveRings* rings_ = nullptr;
  int ring_ = 0;
  In<"X"> x_;
  Out<"Out"> out_;
};

OpDef& Finish(OpDef& def) {
  return def.Input("X", "orders the op; copied where Out is another variable", AnyType(), OfAnyKind())
      .Output("Out", "X itself", SameTypeAs("X"), OfAnyKind())
      .InferShape(SameShape("X", "Out"))
      .Affects({Effect::kRing})
      .GradMadeBy(RefuseGradient);
}

}  // namespace

void RegisterStreamSync(OpRegistry& ops) {
  Finish(ops.Add("c_sync_calc_stream").Doc("Waits for the computation.", kCalcDoc))
      .KernelForAnyType<Cpu, AwaitComputationKernel>();
  Finish(ops.Add("c_sync_comm_stream").Doc("Waits for the communication of one ring.", kCommDoc))
      .Attr("ring_id", 0, "which communicator", AtLeast(0))
      .KernelForAnyType<Cpu, AwaitRingKernel>();
}

}  // namespace penstock
