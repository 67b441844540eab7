// When a communicator sends what it is given, and when it asks for parameters.
//
//   std::unique_ptr<Mode> mode = MakeStepMode(rpc);
//   mode->Send(gradient, value);  mode->EndStep(peers);  mode->Land(param, w);  mode->Stop();
//
// In geo-SGD, where trainers optimize by themselves:
//
//   mode->Begin(scope);  mode->Touch(table, ids);  mode->EndLocalStep(*scope);  mode->Stop();
//
// Called from one thread at a time. Gradients, parameters and tables outlive the mode. What a mode does not
// take is kFailedPrecondition E-communicator-unfit.
#pragma once

#include <memory>
#include <span>

#include "executor/communicator/whole.h"
#include "framework/tensor/scope.h"

namespace penstock::communicator {

class Mode {
 public:
  virtual ~Mode() = default;
  // `residual` as of TrainerCommunicator::Send.
  virtual Status Send(Gradient&, const Variable&, const Tensor& /*residual*/) {
    return Unfit("sends a gradient");
  }
  virtual Status EndStep(PeersHandle) { return Unfit("ends a step of all trainers"); }
  virtual Status CountStep(PeersHandle) { return Unfit("counts a step"); }
  virtual Status Land(Param&, Tensor&) { return Unfit("receives a parameter"); }
  // What has come since it was landed last gets into `scope`, where a program is about to run.
  virtual Status BeginRun(Scope&) { return OkStatus(); }

  // Before the first step: parameters are those of `scope`, which is kept until Stop.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): who overrides it keeps it
  virtual Status Begin(std::shared_ptr<Scope>) { return OkStatus(); }
  virtual bool has_begun() const { return true; }
  virtual Status Touch(const Table&, std::span<const std::int64_t>) { return UnfitForGeo(); }
  virtual Status EndLocalStep(const Scope&) { return UnfitForGeo(); }

  // Sends what waits. The last call.
  virtual Status Stop() = 0;

 protected:
  static Status Unfit(const char* does) {
    return FailedPrecondition("E-communicator-unfit", "the program ", does, ", for which this process's ",
                              "communicator was not started; stop it and start one with this program");
  }
  static Status UnfitForGeo() { return Unfit("tells what it has changed by itself"); }
};

}  // namespace penstock::communicator
