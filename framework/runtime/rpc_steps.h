// The steps of a trainer, with gradients to servers and parameters from them: the second part of RpcClient,
// whose comment has the rules of memory, threads and waits.
//
//   PENSTOCK_RETURN_IF_ERROR(steps.Push(push_, gradient));
//   PENSTOCK_RETURN_IF_ERROR(steps.EndStep(peers_));
//   PENSTOCK_RETURN_IF_ERROR(steps.Pull(pull_, param));
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/runtime/rpc_contracts.h"
#include "framework/tensor/variable.h"

namespace penstock {

// Rows of a parameter that one server holds, and their initial value.
struct InitialPiece {
  std::string pserver;  // "host:port"
  std::string name;     // the variable's name on the server
  Tensor value;
};

namespace rpc {

class Steps {
 public:
  virtual ~Steps() = default;

  // Sends the gradient of the open step to its server: a tensor, or selected rows. Pushing a piece twice in
  // one step is kFailedPrecondition.
  virtual Status Push(PushHandle piece, const Variable& value) = 0;
  // The same for a gradient that is compressed with error feedback (text/compression.h). `residual`, of the
  // piece's type and shape, holds what earlier steps did not send and receives what this step does not send,
  // at the latest when the gradient's bytes may change again. kInvalidArgument E-send-residual: its type or
  // shape differs. kFailedPrecondition E-compression-finite.
  virtual Status PushWithResidual(PushHandle /*piece*/, const Tensor& /*value*/, const Tensor& /*residual*/) {
    return Unimplemented("E-send-compressed", "this client does not compress gradients");
  }
  // Tells these servers that their learning-rate schedules must count the open step.
  virtual Status CountStep(PeersHandle pservers) {
    static_cast<void>(pservers);
    return Unimplemented("E-comm-count", "this client cannot tell servers of its steps");
  }
  // send_barrier: ends this trainer's step; all its gradients for these servers have been pushed. In a
  // program without send_barrier a step ends by itself: at the first Pull after a Push, or at a repeated
  // push, count or look-up of the same piece.
  virtual Status EndStep(PeersHandle pservers) = 0;
  // Fills `out` with the version after this trainer's last ended step (version 0 before the first). If steps
  // end by themselves, `out` gets a value that includes this trainer's gradients of all ended steps. Writes
  // into `out`'s memory, even if shared, if it is a tensor of the piece's type and shape, otherwise into new
  // memory. In a program with fetch_barrier the bytes may arrive as late as CompletePulls: do not read or
  // write `out` before that call returns. After an error its bytes are undefined.
  virtual Status Pull(PullHandle piece, Variable& out) = 0;
  // As Pull, but does not wait: the next Pull, CompleteAhead or CompletePulls waits for this one too. Do not
  // read or write `out` before that call returns.
  virtual Status PullAhead(PullHandle piece, Variable& out) { return Pull(piece, out); }
  virtual Status CompleteAhead() { return OkStatus(); }
  // Requests the version after the open step before that step has ended; `out` holds it once CompletePulls
  // returns. Only for programs with both barriers, and only if PullsNext().
  virtual Status PullNext(PullHandle /*piece*/, Variable& /*out*/) {
    return Unimplemented("E-comm-next", "this client asks for nothing before a step has ended");
  }
  virtual bool PullsNext() const { return false; }
  // fetch_barrier: waits until all pulls of this step have arrived.
  virtual Status CompletePulls(PeersHandle pservers) = 0;
  // The same, but leaves the pulls in flight: waits only until the servers have this step's gradients; before
  // step() 1 for all. Do not read or write what was pulled until CompleteLeft or CompleteLeftInto returns.
  // The next call that takes part in a step (all but PullRows) waits first: no step begins with old pulls.
  virtual Status LeavePulls(PeersHandle pservers) { return CompletePulls(pservers); }
  // Whether runs may end with LeavePulls: everyone who reads their variables afterwards must wait for them.
  virtual bool LeavesPulls() const { return false; }
  // Waits for the pulls that LeavePulls left in flight; returns at once if there are none. An error is
  // returned once by this or the next function, and by every later call that takes part in a step.
  virtual Status CompleteLeft() { return OkStatus(); }
  // The same for those that write into the memory of `variable`, if it is a tensor. From any thread.
  virtual Status CompleteLeftInto(const Variable& /*variable*/) { return OkStatus(); }
  // Whether CompleteLeft, or CompleteLeftInto, might wait or return an error. From any thread.
  virtual bool HasLeft() const { return false; }
  virtual bool HasLeftInto(const Variable& /*variable*/) const { return false; }
  // Replaces the initial values that the servers' startup programs computed, and waits until the servers have
  // the new ones. Every trainer of the job must call this with the same values before its first step
  // (kFailedPrecondition E-load-late); if the values differ, the servers end the job (E-load-differs). A
  // program that receives the pieces must be attached before.
  virtual Status SetInitial(const std::vector<InitialPiece>& pieces) {
    if (pieces.empty()) return OkStatus();
    return Unimplemented("E-load-remote", "this client cannot give servers initial values");
  }
  // The number of complete steps of the job before this start of it: those of the checkpoint from which it
  // continues; 0 for a new job. Waits for a server. kFailedPrecondition E-resume-early: no program with
  // servers was attached.
  virtual Result<std::uint64_t> FirstStep() {
    return FailedPrecondition("E-resume-early", "no program with parameter servers has run yet")
        .With("run the startup program first");
  }
  // This trainer's number; -1: no program with servers was attached.
  virtual int trainer() const { return -1; }
  // The number of steps that this trainer has ended; with the programs of several transpiles, in total.
  virtual std::uint64_t step() const { return 0; }
  // The same for the program's transpile alone.
  virtual std::uint64_t StepOf(const Program& /*program*/) const { return step(); }
};

}  // namespace rpc
}  // namespace penstock
