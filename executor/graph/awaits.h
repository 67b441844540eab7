// Where a run waits for operations that earlier steps started and that may still use their variables: before
// the first step that uses such a variable, and at the end of the run.
//
//   g = c_allreduce_sum(X=g)
//   h = mul_grad(...)            runs beside the reduction
//   p = sgd(Grad=g, ...)         waits for the ring
#pragma once

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

}  // namespace penstock::exec
