// When a communicator sends what it is given, and when it asks for parameters.
//
//   std::unique_ptr<Mode> mode = MakeStepMode(rpc);
//   mode->Send(gradient, value);  mode->EndStep(peers);  mode->Land(param, w);  mode->Stop();
//
// Called from one thread at a time. Gradients and parameters outlive the mode.
#pragma once

#include <memory>

#include "executor/communicator/whole.h"

namespace penstock::communicator {

class Mode {
 public:
  virtual ~Mode() = default;
  // `residual` as of TrainerCommunicator::Send.
  virtual Status Send(Gradient& gradient, const Variable& value, const Tensor& residual) = 0;
  virtual Status EndStep(PeersHandle pservers) = 0;
  virtual Status CountStep(PeersHandle pservers) = 0;
  virtual Status Land(Param& param, Tensor& out) = 0;
  // What has come since it was landed last gets into `scope`, where a program is about to run.
  virtual Status BeginRun(Scope&) { return OkStatus(); }
  // Sends what waits. The last call.
  virtual Status Stop() = 0;
};

}  // namespace penstock::communicator
