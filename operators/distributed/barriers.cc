// send_barrier, fetch_barrier: the end of a trainer's step, and the arrival of what it fetched.
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/comm.h"

namespace penstock {
namespace {

constexpr char kSendDoc[] = R"(
Ends this trainer's step: each server in `endpoints` now has everything that the trainer sends it in this
step. The op does not wait for other trainers; later requests for the new version do. With half_async, the
trainer's communicator has sent everything and ends the step.)";

constexpr char kFetchDoc[] = R"(
Waits until everything that the recv ops of this step requested has arrived from the servers in
`endpoints`. If nothing in the program reads it before the next run, the executor may let it arrive after this
run: whoever reads it first waits for it.)";

// Both resolve the servers once and make one call each step.
template <Status (rpc::Steps::*kCall)(PeersHandle)>
class BarrierKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    const roles::BarrierView barrier(k.op());
    PENSTOCK_ASSIGN_OR_RETURN(client_, RequireRpc(k));
    if (barrier.half_async()) {
      PENSTOCK_ASSIGN_OR_RETURN(communicator_, RequireCommunicator(k));
    }
    leaves_pulls_ = barrier.leaves_pulls();
    PENSTOCK_ASSIGN_OR_RETURN(peers_, client_->DeclarePeers(TextsOf(barrier.addresses()), TrainerOf(k)));
    return OkStatus();
  }
  Status Run(KernelRun&) override {
    if (communicator_ != nullptr) return communicator_->EndStep(peers_);
    return leaves_pulls_ ? client_->LeavePulls(peers_) : (client_->*kCall)(peers_);
  }

 private:
  RpcClient* client_ = nullptr;
  TrainerCommunicator* communicator_ = nullptr;  // whose step ends; null: the client's
  bool leaves_pulls_ = false;
  PeersHandle peers_;
};

using SendBarrierKernel = BarrierKernel<&rpc::Steps::EndStep>;
using FetchBarrierKernel = BarrierKernel<&rpc::Steps::CompletePulls>;

OpDef& Finish(OpDef& def) {
  return def.Input("X", "control variables", AnyType(), Optional() | Repeated() | OfAnyKind())
      .Output("Out", "control variables", AnyType(), Optional() | Repeated() | OfAnyKind())
      .Attr("trainer_id", 0, "who calls", AtLeast(0))
      .Attr("endpoints", std::vector<std::string>{"127.0.0.1:6164"}, "the servers")
      .InferShape(OutputsAsDeclared())
      .Affects({Effect::kStep})
      .NoGrad();
}

}  // namespace

void RegisterBarriers(OpRegistry& ops) {
  Finish(ops.Add("fetch_barrier").Doc("Waits for what was fetched in this step.", kFetchDoc))
      .KernelForAnyType<Cpu, FetchBarrierKernel>();
  Finish(ops.Add("send_barrier").Doc("Ends this trainer's step.", kSendDoc))
      .Attr("half_async", false, "the step is the communicator's")
      .KernelForAnyType<Cpu, SendBarrierKernel>();
}

}  // namespace penstock
