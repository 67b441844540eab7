// A trainer's communicator, as communication kernels see it: it takes whole gradients, cuts them, sends them
// when its mode says so, and lands parameters where the program asks for them. Names are resolved when a
// kernel is prepared; each step passes handles.
//
//   PENSTOCK_ASSIGN_OR_RETURN(gradient_, communicator.DeclareGradient({.name = "w@GRAD", .pieces = ...}));
//   PENSTOCK_ASSIGN_OR_RETURN(param_, communicator.DeclareParam({.name = "w", .pieces = ...}));
//   ... each step:  communicator.Send(gradient_, value);  communicator.EndStep(peers);
//                   communicator.Land(param_, w);
//   In geo-SGD:     communicator.Touch(table_, ids);  communicator.EndLocalStep(scope);
//
// Declare calls are right at any time; the others before it was started are kFailedPrecondition
// E-communicator-missing, and E-communicator-unfit if it was started for a program of another kind. Called
// from one thread at a time; where steps are not counted (mode ASYNC), Send, Land and BeginRun from any.
// Each call may wait, and returns the first error of the client once there is one.
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
  std::vector<Piece> pieces;  // in the order of the rows, all of them
  bool adds = false;          // gradients that wait may be added (merge_add)
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

  // The same variable with the same pieces has one handle, however often it is declared.
  virtual Result<GradientHandle> DeclareGradient(const WholeVariable& gradient) = 0;
  virtual Result<ParamHandle> DeclareParam(const WholeVariable& param) = 0;
  // A table of which a trainer that optimizes by itself tells what it touches.
  virtual Result<TableHandle> DeclareTable(const std::string& table) = 0;

  // A gradient of the step now open: a tensor, or rows of one. Its bytes must stay as they are until EndStep
  // has returned.
  // `residual`, if it is not empty, is that of the whole gradient (RpcClient::PushWithResidual); where the
  // mode sends from a thread of its own, that thread writes it, up to Stop.
  virtual Status Send(GradientHandle gradient, const Variable& value, const Tensor& residual) = 0;
  // send with use_send_handler=false: the learning-rate schedule of each of these servers is to count this
  // step.
  virtual Status CountStep(PeersHandle pservers) = 0;
  // send_barrier with half_async: all gradients of this process's step were handed over.
  virtual Status EndStep(PeersHandle pservers) = 0;
  // recv: `out` gets the parameter's newest value, if there is a newer one than it has. Nothing but this and
  // BeginRun writes parameters, so a value never changes while a step computes.
  virtual Status Land(ParamHandle param, Variable& out) = 0;
  // A program with recv ops of this communicator is about to run in `scope`: parameters that have come
  // since the last Land get their newest values there. Without effect if it was not started.
  virtual Status BeginRun(Scope& scope) = 0;
  // The step now open looks up these rows of the table, and may change them.
  virtual Status Touch(TableHandle table, std::span<const std::int64_t> ids) = 0;
  // A step is over in which a trainer has optimized by itself: nothing in it runs any more. In some steps the
  // parameters in `scope` change here.
  virtual Status EndLocalStep(const Scope& scope) = 0;
  // Sends what waits, and stops. Without effect if it was not started.
  virtual Status Stop() = 0;
};

}  // namespace penstock
