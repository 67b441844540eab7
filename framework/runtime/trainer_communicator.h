// A trainer's communicator, as communication kernels see it. It takes whole gradients, cuts them into pieces,
// sends them when its mode requires, and writes received parameters when the program asks for them. Names are
// resolved when a kernel is prepared; each step passes handles.
//
//   PENSTOCK_ASSIGN_OR_RETURN(gradient_, communicator.DeclareGradient({.name = "w@GRAD", .pieces = ...}));
//   PENSTOCK_ASSIGN_OR_RETURN(param_, communicator.DeclareParam({.name = "w", .pieces = ...}));
//   ... each step:  communicator.Send(gradient_, value);  communicator.EndStep(peers);
//                   communicator.Land(param_, w);
//   In geo-SGD:     communicator.Touch(table_, ids);  communicator.EndLocalStep(scope);
//
// The Declare functions may be called at any time. The other calls return kFailedPrecondition
// E-communicator-missing before the communicator is started, and E-communicator-unfit if it was started for
// another kind of program. Call from one thread at a time; if steps are not counted (mode ASYNC), Send, Land
// and BeginRun may be called from any thread. Each call may wait. After the client's first error every call
// returns that error.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/runtime/rpc_client.h"
#include "framework/tensor/scope.h"

namespace penstock {

class Scope;

struct WholeVariable {
  struct Piece {
    RemotePiece remote;
    Dim begin = 0, end = 0;  // rows of the whole
  };
  std::string name;
  std::vector<Piece> pieces;  // all, in the order of their rows
  bool adds = false;          // waiting gradients may be added up (merge_add)
};

struct GradientHandle {
  int index = -1;
};
struct ParamHandle {
  int index = -1;
};
struct TableHandle {
  int index = -1;
};

class TrainerCommunicator {
 public:
  virtual ~TrainerCommunicator() = default;

  // Declaring the same variable with the same pieces again returns the same handle.
  virtual Result<GradientHandle> DeclareGradient(const WholeVariable& gradient) = 0;
  virtual Result<ParamHandle> DeclareParam(const WholeVariable& param) = 0;
  // Declares a table for Touch, in the program of a trainer that optimizes locally.
  virtual Result<TableHandle> DeclareTable(const std::string& table) = 0;

  // Hands over a gradient of the open step: a tensor, or selected rows. Its bytes must not change until
  // EndStep has returned. `residual`, if not empty, is the residual of the whole gradient
  // (RpcClient::PushWithResidual). If the mode sends from a thread of its own, that thread may write
  // `residual` until Stop.
  virtual Status Send(GradientHandle gradient, const Variable& value, const Tensor& residual) = 0;
  // send with use_send_handler=false: tells these servers that their learning-rate schedules must count this
  // step.
  virtual Status CountStep(PeersHandle pservers) = 0;
  // send_barrier with half_async: all gradients of this step of the process were handed over.
  virtual Status EndStep(PeersHandle pservers) = 0;
  // recv: writes the parameter's newest value to `out` if `out` is older. Only Land and BeginRun write
  // parameters, so a value never changes while a step computes.
  virtual Status Land(ParamHandle param, Variable& out) = 0;
  // Call before a program with recv ops of this communicator runs in `scope`: parameters received since the
  // last Land get their newest values there. No effect if the communicator was not started.
  virtual Status BeginRun(Scope& scope) = 0;
  // Reports that the open step looks up these rows of the table, and may change them.
  virtual Status Touch(TableHandle table, std::span<const std::int64_t> ids) = 0;
  // Ends a step in which the trainer optimized locally; all ops of the step must have finished. In some steps
  // this changes the parameters in `scope`.
  virtual Status EndLocalStep(const Scope& scope) = 0;
  // Whether it runs and ends the client's steps by itself. Gradients that are whole pieces, such as the rows
  // of a table for one server, must then go through it too, so that each is in one step of the client.
  virtual bool ends_steps() const = 0;
  // Sends what is queued, and stops. No effect if the communicator was not started.
  virtual Status Stop() = 0;
};

}  // namespace penstock
