#include "executor/communicator/step_mode.h"

namespace penstock::communicator {
namespace {

class StepMode : public Mode {
 public:
  explicit StepMode(RpcClient& rpc) : rpc_(rpc) {}

  Status Send(Gradient& gradient, const Variable& value, const Tensor& residual) override {
    return PushRows(rpc_, gradient, value, residual);
  }
  Status EndStep(PeersHandle pservers) override {
    pservers_ = pservers;
    PENSTOCK_RETURN_IF_ERROR(rpc_.EndStep(pservers));
    // The gradients' memory is written again in the next step, and no fetch_barrier stands before that.
    return rpc_.CompletePulls(pservers);
  }
  Status CountStep(PeersHandle pservers) override { return rpc_.CountStep(pservers); }
  Status Land(Param& param, Tensor& out) override {
    PENSTOCK_RETURN_IF_ERROR(PullRows(rpc_, param, out));
    return rpc_.CompletePulls(pservers_);
  }
  Status Stop() override { return OkStatus(); }

 private:
  RpcClient& rpc_;
  PeersHandle pservers_;
};

}  // namespace

std::unique_ptr<Mode> MakeStepMode(RpcClient& rpc) { return std::make_unique<StepMode>(rpc); }

}  // namespace penstock::communicator
