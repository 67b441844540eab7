// How a trainer ends: the last part of RpcClient.
//
//   PENSTOCK_RETURN_IF_ERROR(control.Complete());      // in order
//   control.Abandon(why);                              // or not
#pragma once

#include "framework/base/status.h"

namespace penstock {

class TrainerCommunicator;

namespace rpc {

class Control {
 public:
  virtual ~Control() = default;

  // The trainer's communicator, for ops that use one; null if this client has none.
  virtual TrainerCommunicator* communicator() { return nullptr; }
  // Tells every server that this trainer is finished. Idempotent.
  virtual Status Complete() = 0;
  // Makes the current call and every later call return kCancelled within a second. From any thread.
  virtual void Cancel() = 0;
  // Tells every server that this trainer has failed, and why; an earlier error takes precedence. Does not
  // wait. From any thread.
  virtual void Abandon(const Status& /*why*/) {}
};

}  // namespace rpc
}  // namespace penstock
