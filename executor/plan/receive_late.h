// Lets parameters travel past the end of the run: the fetch_barrier of a step waits only until the servers
// have the step's gradients, and the next run waits for each parameter before the first step that names it.
//
//   before   w = recv()  v = recv()  send_barrier  fetch_barrier    the run ends with the new w and v
//   after    w = recv()  v = recv()  send_barrier  fetch_barrier    the run ends
//            (next run)  waits for w  h = mul(X=x, Y=w)  waits for v  y = mul(X=h, Y=v)
//
// The fetch_barrier gets the attribute leaves_pulls; FindAwaits (executor/graph/awaits.h) derives the waits
// from it. Call it only if the client LeavesPulls(): others who read the scope between the runs wait too.
//
// So does the fetch_barrier of a startup program. A new process of a trainer receives the result of the step
// in which the other trainers may still be, and they may wait for something else of this process, which the
// script gives only afterwards.
#pragma once

#include <memory>

#include "executor/graph/compiled_block.h"

namespace penstock::exec {

// Parameters may arrive late if
//   * the block is a program's main block with one send_barrier and, after it, one fetch_barrier; or with one
//     fetch_barrier, and it ends no step and sends no gradient;
//   * every recv stands before the fetch_barrier, and receives into variables of the scope or into rows of
//     them (row_views.h);
//   * no instruction after the fetch_barrier uses what is received, except that it may join rows that are in
//     place;
//   * nothing that is received is fetched.
// Returns the block itself if one of these is false. Takes time linear in its size.
std::shared_ptr<const CompiledBlock> ReceiveLate(std::shared_ptr<const CompiledBlock> block);

}  // namespace penstock::exec
