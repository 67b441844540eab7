// Decides when a communicator sends its gradients and when it requests parameters.
//
//   std::unique_ptr<Mode> mode = MakeStepMode(rpc);
//   mode->Send(gradient, value, residual);  mode->EndStep(peers);  mode->Land(param, w);  mode->Stop();
//
// In geo-SGD, where trainers optimize locally:
//
//   mode->Begin(scope);  mode->Touch(table, ids);  mode->EndLocalStep(*scope);  mode->Stop();
//
// Call from one thread at a time. Gradients, parameters and tables outlive the mode. A call that a mode does
// not support returns kFailedPrecondition E-communicator-unfit.
#pragma once

#include <memory>
#include <span>

#include "executor/communicator/whole.h"
#include "framework/tensor/scope.h"

namespace penstock::communicator {

class Mode {
 public:
  virtual ~Mode() = default;
  // `residual` as in TrainerCommunicator::Send.
  virtual Status Send(Gradient&, const Variable&, const Tensor& /*residual*/) {
    return Unfit("sends a gradient");
  }
  virtual Status EndStep(PeersHandle) { return Unfit("ends a step of all trainers"); }
  virtual Status CountStep(PeersHandle) { return Unfit("counts a step"); }
  virtual Status Land(Param&, Tensor&) { return Unfit("receives a parameter"); }
  // Writes parameters received since they were last landed to `scope`, in which a program is about to run.
  virtual Status BeginRun(Scope&) { return OkStatus(); }

  // Call before the first step: reads the parameters of `scope`, and keeps the scope until Stop.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): who overrides it keeps it
  virtual Status Begin(std::shared_ptr<Scope>) { return OkStatus(); }
  virtual bool has_begun() const { return true; }
  virtual bool ends_steps() const { return false; }  // as TrainerCommunicator::ends_steps
  virtual Status Touch(const Table&, std::span<const std::int64_t>) { return UnfitForGeo(); }
  virtual Status EndLocalStep(const Scope&) { return UnfitForGeo(); }

  // Sends what is queued, without waiting for the end of a round or an exchange, and returns when the servers
  // have it.
  virtual Status Flush() { return OkStatus(); }
  // Sends what is queued. Must be the last call.
  virtual Status Stop() = 0;

 protected:
  static Status Unfit(const char* does) {
    return FailedPrecondition("E-communicator-unfit", "the program ", does, ", for which this process's ",
                              "communicator was not started; stop it and start one with this program");
  }
  static Status UnfitForGeo() { return Unfit("tells what it has changed by itself"); }
};

}  // namespace penstock::communicator
