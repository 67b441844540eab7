// Where a run waits for operations that earlier steps started and that may still use their variables: before
// the first step that uses such a variable, and at the end of the run.
//
//   g = c_allreduce_sum(X=g)
//   h = mul_grad(...)            runs beside the reduction
//   p = sgd(Grad=g, ...)         waits for the ring
#pragma once

#include <optional>
#include <vector>

#include "executor/graph/compiled_block.h"

namespace penstock::exec {

struct Await {
  static constexpr int kPulls = -1;  // what RpcClient::PullAhead asked for
  int step = 0;                      // before which it waits; the number of steps: at the end of the run
  int ring = kPulls;
};

// In the order of the steps. Operations in progress are those of ops that affect a ring, on their variables,
// and those of recv ops, on their outputs. A c_sync_comm_stream waits for its ring itself, and a
// fetch_barrier for the pulls; c_sync ops whose Out is X only order the streams and use no variable. An op
// that runs blocks uses all variables. Pulls are also awaited before the next op that affects the trainer's
// step and is no recv.
std::vector<Await> FindAwaits(const CompiledBlock& block);

// The kind of the operation that the instruction may leave in progress, as Await::ring; nullopt: none.
std::optional<int> OperationOf(const Instruction& instruction);
// The kind of operation that the instruction itself waits for.
std::optional<int> AwaitedBy(const Instruction& instruction);
// Whether the instruction only orders the streams of computation and communication.
bool OrdersStreamsInPlace(const Instruction& instruction);

}  // namespace penstock::exec
