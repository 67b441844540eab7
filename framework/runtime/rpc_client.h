// A trainer's connection to the parameter servers, as communication kernels see it. Names are resolved when a
// kernel is prepared; each step passes handles. Its parts are the interfaces of rpc_contracts.h, rpc_steps.h,
// rpc_rows.h and rpc_control.h; code that needs one of them takes that one.
//
//   const RemotePiece piece{server, "w@GRAD.trainer_0", DType::kFp32, {13, 1}, trainer_id};
//   PENSTOCK_ASSIGN_OR_RETURN(push_, rpc.DeclarePush(piece));
//   ... each step:  PENSTOCK_RETURN_IF_ERROR(rpc.Push(push_, gradient));
//
// Threads: call from one thread at a time. Exceptions: Cancel and Abandon; and the threads of a communicator
// push and pull concurrently with the trainer's thread.
//
// Memory: Push does not wait for the server. It keeps the tensor's buffer, whose bytes must not change until
// CompletePulls or LeavePulls of the same step or EndStep of the next step has returned; in a program
// without fetch_barrier, until the Pull that ended the step has returned.
//
// Waits: EndStep, Pull, CompleteRows, CompletePulls, LeavePulls, CompleteLeft, CompleteLeftInto, SaveTable
// and Complete may wait; so may the first call of a step after LeavePulls. They report after 10 s, 20 s, 40 s
// what they wait for, and give up only if a peer is gone or the run is cancelled. After the first error every
// later call returns that error.
#pragma once

#include "framework/runtime/rpc_contracts.h"
#include "framework/runtime/rpc_control.h"
#include "framework/runtime/rpc_rows.h"
#include "framework/runtime/rpc_steps.h"

namespace penstock {

class RpcClient : public rpc::Contracts, public rpc::Steps, public rpc::Rows, public rpc::Control {
 public:
  ~RpcClient() override = default;
};

}  // namespace penstock
