// Where a run waits for operations that earlier steps started and that may still use their variables: before
// the first step that uses such a variable, and at the end of the run. And where a run waits for parameters
// that the run before has left on their way.
//
//   g = c_allreduce_sum(X=g)
//   h = mul_grad(...)            runs beside the reduction
//   p = sgd(Grad=g, ...)         waits for the ring
#pragma once

#include <compare>
#include <optional>
#include <vector>

#include "executor/graph/compiled_block.h"

namespace penstock::exec {

// What may be in progress beside the steps: what RpcClient::PullAhead asked for, or the operations of a ring.
struct Operation {
  enum class Kind { kPulls, kRing };
  Kind kind = Kind::kPulls;
  int ring = 0;  // with kRing

  static Operation Ring(int ring) { return {Kind::kRing, ring}; }
  auto operator<=>(const Operation&) const = default;
};

struct Await {
  enum class For {
    kOperation,  // what this run has started
    kLeft,       // what an earlier run has left in flight into `slot`
    // What this run leaves in flight into `slot`, a piece that a join is about to copy. No wait if the piece
    // is a view of the joined variable, because nothing is copied then.
    kCopied,
  };
  int step = 0;  // before which it waits; the number of steps: at the end of the run
  For what = For::kOperation;
  int slot = -1;             // with kLeft and kCopied; -1: any
  Operation operation = {};  // with kOperation
};

// In the order of the steps. Operations in progress are those of ops that affect a ring, on their variables,
// and those of recv ops, on their outputs. A c_sync_comm_stream waits for its ring itself, and a
// fetch_barrier for the pulls; c_sync ops whose Out is X only order the streams and use no variable. An op
// that runs blocks uses all variables. Pulls are also awaited before the next op that affects the trainer's
// step and is no recv.
//
// If the block's fetch_barrier leaves pulls (executor/plan/receive_late.h), pulls of the last run may write
// to any variable of the scope when this run begins. Each such variable is awaited before the first
// instruction that names it, and all are before an instruction that may find variables by name.
std::vector<Await> FindAwaits(const CompiledBlock& block);

// Whether the block has a fetch_barrier that leaves pulls.
bool LeavesPulls(const CompiledBlock& block);
bool LeavesPulls(const Instruction& instruction);
// Whether the instruction may read variables that it does not name.
bool FindsByName(const Instruction& instruction);

// The operation that the instruction may leave in progress; nullopt: none.
std::optional<Operation> OperationOf(const Instruction& instruction);
// The operation that the instruction itself waits for.
std::optional<Operation> AwaitedBy(const Instruction& instruction);
// Whether the instruction only orders the streams of computation and communication.
bool OrdersStreamsInPlace(const Instruction& instruction);

}  // namespace penstock::exec
