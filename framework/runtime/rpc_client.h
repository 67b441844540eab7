// A trainer's connection to the parameter servers, as communication kernels see it. Names are resolved when a
// kernel is prepared; each step passes handles.
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

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/tensor/variable.h"

namespace penstock {

class Program;
class TrainerCommunicator;

struct RemotePiece {
  std::string pserver;  // "host:port"
  std::string name;     // the variable's name on the server
  DType dtype = DType::kFp32;
  Shape shape;
  int trainer_id = 0;
};

struct PushHandle {
  int index = -1;
};
struct PullHandle {
  int index = -1;
};
struct RowsHandle {
  int index = -1;
};
struct PeersHandle {
  int index = -1;
};

// Rows of a parameter that one server holds, and their initial value.
struct InitialPiece {
  std::string pserver;  // "host:port"
  std::string name;     // the variable's name on the server
  Tensor value;
};

class RpcClient {
 public:
  virtual ~RpcClient() = default;

  // Derives from the program what each server must hold (the contract). Call before the Declare calls of
  // the kernels of a program with communication ops; it may be called again.
  virtual Status Attach(const Program& program) = 0;

  virtual Result<PushHandle> DeclarePush(const RemotePiece& piece) = 0;
  virtual Result<PullHandle> DeclarePull(const RemotePiece& piece) = 0;
  // Declares a piece of a table for look-ups of single rows; its shape gives the number of rows.
  virtual Result<RowsHandle> DeclareRows(const RemotePiece& piece) = 0;
  virtual Result<PeersHandle> DeclarePeers(const std::vector<std::string>& pservers, int trainer_id) = 0;

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
  // Asks for rows `ids` of the piece, in that order, of the version that Pull would give. `out` gets one row
  // per id; do not read or write it before CompleteRows returns. `ids` is copied.
  virtual Status PullRows(RowsHandle piece, std::span<const std::int64_t> ids, Tensor& out) = 0;
  virtual Status CompleteRows() = 0;
  // Asks for the rows of a table that any trainer has updated since this trainer's request of the step before
  // (in the first: since training began). After CompletePulls, `out` has them in ascending order, each once,
  // including the gradients that this trainer pushed in ended steps.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): overriders keep it
  virtual Status PullChanged(PullHandle /*piece*/, std::shared_ptr<SelectedRows> /*out*/) {
    return Unimplemented("E-comm-changed", "this client cannot ask for the rows of a table that changed");
  }
  // fetch_barrier: waits until all pulls of this step have arrived.
  virtual Status CompletePulls(PeersHandle pservers) = 0;
  // The same, but leaves the pulls in flight: waits only until the servers have this step's gradients. Do not
  // read or write what was pulled before CompleteLeft or CompleteLeftInto has returned. The next call that
  // takes part in a step (all but PullRows) waits for them first, so no step begins with pulls of another.
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
  // checkpoint_notify: each of the servers writes its rows of a table sharded by id to a file on its own
  // disk. files[i] is the path for server i; the rows have the version that Pull would give. If a server
  // cannot write, its error is returned and the job continues.
  virtual Status SaveTable(PeersHandle pservers, const std::string& table,
                           const std::vector<std::string>& files) = 0;
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
  // The number of steps that this trainer has ended; with the programs of several transpiles, in total.
  virtual std::uint64_t step() const { return 0; }
  // The same for the program's transpile alone.
  virtual std::uint64_t StepOf(const Program& /*program*/) const { return step(); }
  // Whether a program of another transpile than this program's receives the variable.
  virtual bool IsOfAnotherProgram(const Program& /*program*/, const std::string& /*variable*/) const {
    return false;
  }
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

}  // namespace penstock
