// Lets parameters travel during the backward pass: each is asked for as soon as its gradient is sent and no
// later instruction reads its old value.
//
//   before   gw = back(w)  send(gw)  gv = back(v)  send(gv)  send_barrier  w = recv  v = recv  fetch_barrier
//   after    gw = back(w)  send(gw)  w = recv  gv = back(v)  send(gv)  v = recv  send_barrier  fetch_barrier
//
// A recv that has moved asks for the next version (attribute next_version). The received values are the same:
// a server answers a request for a version only when the version contains all trainers' gradients of the
// step.
#pragma once

#include <memory>

#include "executor/graph/compiled_block.h"

namespace penstock::exec {

// A recv moves forward if
//   * it names its parameter and stands between the block's one send_barrier and its one fetch_barrier;
//   * an instruction before the send_barrier sends that parameter's gradient.
// It then follows the later of that send and the last instruction before the barrier that mentions the
// parameter or an output of the recv, in its arguments or in blocks that it runs. Recvs that follow the same
// instruction keep their order. Returns the block itself if none moves. Takes time linear in its size.
std::shared_ptr<const CompiledBlock> ReceiveEarly(std::shared_ptr<const CompiledBlock> block);

}  // namespace penstock::exec
