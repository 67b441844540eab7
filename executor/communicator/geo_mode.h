// GEO: a trainer optimizes locally. Every `push_every` steps it sends its own changes and receives those of
// all trainers; Stop sends what has changed since, and receives nothing.
//
// Promise, for N trainers and a server's value p: an exchange adds (w - old) / N of the trainer's w to p
// and to old, exactly once and in whole chunks, whatever the network does; then w += p - old and old = p.
// Every trainer thus receives 1/N of what each other trainer has trained, and keeps all of its own. Of a
// table, an exchange sends the rows that this trainer has touched since the last exchange, and fetches
// those that any trainer has touched since then. A parameter changes only in EndLocalStep, never while a
// step computes. A single trainer gets the bytes of training on one machine, for any push_every; with
// several, the bytes depend on timing. No trainer waits for another.
//
// With GeoCheckpoints, it writes a part of its own of each checkpoint of the servers, and a job that
// continues begins with what that has (trainer_parts.h).
//
// Memory beside the parameters: three times a dense parameter (old, outgoing, incoming), a table once, and
// the rows of one exchange.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "executor/communicator/exchange_program.h"
#include "executor/communicator/mode.h"
#include "executor/communicator/trainer_parts.h"

namespace penstock::communicator {

struct GeoCheckpoints {
  PartOptions parts = {};
  std::vector<std::string> own = {};  // the trainer's variables that last and are not exchanged
};

// `exchange` is the exchange program of the settings. The client outlives the mode. Call Begin after the
// startup program has run, because that program gives the trainer's id.
std::unique_ptr<Mode> MakeGeoMode(RpcClient& rpc, const GeoSettings& settings, Program exchange,
                                  GeoCheckpoints checkpoints = {});

}  // namespace penstock::communicator
