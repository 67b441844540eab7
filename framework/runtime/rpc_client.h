// A trainer's side of the parameter servers, as communication kernels see it. Names are resolved when a
// kernel is prepared; each step passes handles.
//
//   const RemotePiece piece{server, "w@GRAD.trainer_0", DType::kFp32, {13, 1}, trainer_id};
//   PENSTOCK_ASSIGN_OR_RETURN(push_, rpc.DeclarePush(piece));
//   ... each step:  PENSTOCK_RETURN_IF_ERROR(rpc.Push(push_, gradient));
//
// Called from one thread at a time, but for Cancel, Abandon, and a communicator's threads, which push and
// pull beside the trainer's. Push does not wait for the server: it keeps the tensor's buffer, whose bytes
// must stay as they are until CompletePulls of the same step (or EndStep of the next) has returned, or,
// without a fetch_barrier, the Pull that ended the step. EndStep, Pull, CompleteRows, CompletePulls,
// SaveTable and Complete may wait, report after 10 s, 20 s, 40 s what for, and give up only when a peer is
// gone or the run is cancelled. After the first error every later call returns that error.
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

// Rows of a parameter as a server holds them, and what they shall be before the first step.
struct InitialPiece {
  std::string pserver;  // "host:port"
  std::string name;     // the variable's name on the server
  Tensor value;
};

class RpcClient {
 public:
  virtual ~RpcClient() = default;

  // Called once when a program with communication ops is compiled, before the Declare calls of its kernels:
  // what this side believes each server holds (the contract) is read from it.
  virtual Status Attach(const Program& program) = 0;

  virtual Result<PushHandle> DeclarePush(const RemotePiece& piece) = 0;
  virtual Result<PullHandle> DeclarePull(const RemotePiece& piece) = 0;
  // A piece of a table, of which single rows are asked for; its shape says how many there are.
  virtual Result<RowsHandle> DeclareRows(const RemotePiece& piece) = 0;
  virtual Result<PeersHandle> DeclarePeers(const std::vector<std::string>& pservers, int trainer_id) = 0;

  // Hands the gradient of the step now open to its server: a tensor, or rows of one. Twice in one step for
  // one piece is kFailedPrecondition.
  virtual Status Push(PushHandle piece, const Variable& value) = 0;
  // The same, of a gradient that is compressed with error feedback (text/compression.h). `residual`, of the
  // piece's type and shape, holds what was not sent in earlier steps, and afterwards what was not sent in
  // this one: at the latest when the gradient's own bytes are free again. kInvalidArgument E-send-residual:
  // it does not fit. kFailedPrecondition E-compression-finite.
  virtual Status PushWithResidual(PushHandle /*piece*/, const Tensor& /*value*/, const Tensor& /*residual*/) {
    return Unimplemented("E-send-compressed", "this client does not compress gradients");
  }
  // Tells each of these servers that its learning-rate schedule is to count the step now open.
  virtual Status CountStep(PeersHandle pservers) {
    static_cast<void>(pservers);
    return Unimplemented("E-comm-count", "this client cannot tell servers of its steps");
  }
  // send_barrier: this trainer's step is over, the set of its variables is complete at each of these servers.
  // Of a program without one a step ends by itself: at the first Pull after a Push, or when what was pushed,
  // counted or looked up in the step that is open comes again.
  virtual Status EndStep(PeersHandle pservers) = 0;
  // Fills `out` with the version after this trainer's last ended step (version 0 before the first; where
  // steps end by themselves, a value in which all this trainer's gradients of ended steps are): in the
  // memory that it has, shared or not, if it is a tensor of the piece's type and shape, else in new memory.
  // Where the program has a fetch_barrier the bytes may land as late as in CompletePulls, so nobody may read
  // or write `out` before that returns. After an error its bytes may be anything.
  virtual Status Pull(PullHandle piece, Variable& out) = 0;
  // A Pull that does not wait: the next Pull waits for this one, too (or CompletePulls does), and nobody
  // may read or write `out` before that returns.
  virtual Status PullAhead(PullHandle piece, Variable& out) { return Pull(piece, out); }
  // Asks for rows `ids` of the piece, in that order, of the version that Pull would give. `out` gets one row
  // for each, and has them when CompleteRows returns; nobody may read or write it before. `ids` is copied.
  virtual Status PullRows(RowsHandle piece, std::span<const std::int64_t> ids, Tensor& out) = 0;
  virtual Status CompleteRows() = 0;
  // Asks for the rows of the piece, a table, that any trainer has updated since the trainer's question of the
  // step before (for the first: since training began). `out` has them once CompletePulls returns: ascending,
  // each once, as they are after the gradients that this trainer pushed in ended steps.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): who overrides it keeps it
  virtual Status PullChanged(PullHandle /*piece*/, std::shared_ptr<SelectedRows> /*out*/) {
    return Unimplemented("E-comm-changed", "this client cannot ask for the rows of a table that changed");
  }
  // fetch_barrier: all pulls of this step have arrived.
  virtual Status CompletePulls(PeersHandle pservers) = 0;
  // checkpoint_notify: each of the servers writes its rows of a table sharded by id, of the version
  // that Pull would give, to the file of its position, on its own disk. What a server says against that is
  // the result; the job goes on.
  virtual Status SaveTable(PeersHandle pservers, const std::string& table,
                           const std::vector<std::string>& files) = 0;
  // Gives the servers the values that training begins from, in place of those that their startup programs
  // made, and waits until they have them. Every trainer of the job must give the same values, before its
  // first step (kFailedPrecondition E-load-late): the servers compare, and a difference ends the job
  // (E-load-differs). The program that receives the pieces was attached before.
  virtual Status SetInitial(const std::vector<InitialPiece>& pieces) {
    if (pieces.empty()) return OkStatus();
    return Unimplemented("E-load-remote", "this client cannot give servers initial values");
  }
  // How many steps this trainer has ended.
  virtual std::uint64_t step() const { return 0; }
  // The trainer's communicator, for ops that speak through one; null: this client has none.
  virtual TrainerCommunicator* communicator() { return nullptr; }
  // Tells every server that this trainer is done for good. Idempotent.
  virtual Status Complete() = 0;
  // Makes the call that waits now, and every later one, return kCancelled within a second. From any thread.
  virtual void Cancel() = 0;
  // Tells every server that this trainer has failed, and why, so that nobody has to guess; a first error
  // stays the first. Does not wait. From any thread.
  virtual void Abandon(const Status& /*why*/) {}
};

}  // namespace penstock
