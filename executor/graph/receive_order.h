// Orders the ops of a trainer's step so that parameters travel during the backward pass: each is asked for as
// soon as its gradient is sent and no later op reads its old value.
//
//   program   gw = back(w)  send(gw)  gv = back(v)  send(gv)  send_barrier  w = recv  v = recv  fetch_barrier
//   order     gw = back(w)  send(gw)  w = recv  gv = back(v)  send(gv)  v = recv  send_barrier  fetch_barrier
//
// The received values are the same: a server answers a request for a version only when the version contains
// all trainers' gradients of the step.
#pragma once

#include <vector>

#include "framework/ir/program.h"

namespace penstock::exec {

struct OrderedOp {
  int position = 0;    // in the block
  bool ahead = false;  // a recv that runs before the send_barrier of its step, and asks for the next version
};

// All ops of a block, in the order in which they run: the program's, except that a recv moves forward if
//   * it names its parameter and stands between the block's one send_barrier and its one fetch_barrier;
//   * an op before the send_barrier sends that parameter's gradient.
// The recv then follows the later of that send and the last op before the barrier that mentions the parameter
// or an output of the recv, in its arguments or in blocks that it runs. Recvs that follow the same op keep
// their order. Takes time linear in the size of the program.
std::vector<OrderedOp> OrderWithEarlyReceives(const Program& program, int block);

// All ops of the block in the program's order.
std::vector<OrderedOp> OrderOfProgram(const Program& program, int block);

}  // namespace penstock::exec
