#include "executor/communicator/step_mode.h"

namespace penstock::communicator {
namespace {

class StepMode : public Mode {
 public:
  explicit StepMode(rpc::Steps& rpc) : rpc_(rpc) {}

  Status Send(Gradient& gradient, const Variable& value, const Tensor& residual) override {
    return PushRows(rpc_, gradient, value, residual);
  }
  Status EndStep(PeersHandle pservers) override {
    pservers_ = pservers;
    PENSTOCK_RETURN_IF_ERROR(rpc_.EndStep(pservers));
    // The next step overwrites the gradients' memory, and the program has no fetch_barrier before that.
    return rpc_.CompletePulls(pservers);
  }
  Status CountStep(PeersHandle pservers) override { return rpc_.CountStep(pservers); }
  Status Land(Param& param, Tensor& out) override {
    PENSTOCK_RETURN_IF_ERROR(PullRows(rpc_, param, out));
    return rpc_.CompletePulls(pservers_);
  }
  Status Stop() override { return OkStatus(); }

 private:
  rpc::Steps& rpc_;
  PeersHandle pservers_;
};

}  // namespace

std::unique_ptr<Mode> MakeStepMode(rpc::Steps& rpc) { return std::make_unique<StepMode>(rpc); }

}  // namespace penstock::communicator
