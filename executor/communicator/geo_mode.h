// GEO: a trainer optimizes by itself; every `push_every` steps, and for what is left in Stop, it sends what
// it has changed, and gets what all have.
//
// Promise, for N trainers and a value p of a server that holds it: an exchange adds (w - old) / N of the
// trainer's w to p, once and by whole chunks, whatever the network does, and to old; then w moves by p -
// old, and old is p. So every trainer gets what each has sent, a part of 1/N of what it trains, and keeps
// all of its own. Of a table these are the rows that it touched since the exchange before, and it gets
// those that anybody has touched since. A parameter changes only in EndLocalStep, so never while a step
// computes. A trainer that is alone trains as on one machine, to the bit, whatever push_every is; the bytes
// of several depend on timing. Nobody waits for another trainer.
//
// Memory beside the parameters: of a dense one its size three times (old, what is sent, what arrives), of a
// table once, and of the rows of one exchange.
#pragma once

#include <memory>

#include "executor/communicator/exchange_program.h"
#include "executor/communicator/mode.h"

namespace penstock::communicator {

// `exchange` is that of the settings. The client outlives the mode. A trainer's startup program has run when
// Begin is called: it says who the trainer is.
std::unique_ptr<Mode> MakeGeoMode(RpcClient& rpc, const GeoSettings& settings, Program exchange);

}  // namespace penstock::communicator
