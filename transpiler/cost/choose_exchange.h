// Which dense parameters trainers add up among themselves and which go by pservers, where the user leaves it
// to the cost model (exchange=auto).
//
//   PENSTOCK_ASSIGN_OR_RETURN(config, ChooseExchanges({.ops = AllOps(), .main = main, .startup = startup,
//                                                      .config = config}));
//   config.exchanges     one choice for each trained parameter, with its reason
//
// The model is expect.h's: a link is busy for its bytes and its messages. Of one parameter of S bytes in k
// slices, n trainers and m pservers:
//
//   all-reduce   a rank's link: 2(n-1) messages, 2S(n-1)/n bytes
//   pservers     up and down again, each the longer of a trainer's link, k messages and S bytes, and a
//                pserver's share of what all trainers send: nk/m messages and nS/m bytes
//
// A pserver's share is that of parameters spread evenly, as placement aims at. What the backward pass hides
// is left out: it depends on the time of a step, which a program does not tell. So many small parameters go
// by pservers if there are more than two trainers and enough pservers; large ones go over rings.
#pragma once

#include <cstdint>

#include "framework/base/status.h"
#include "transpiler/cost/expect.h"
#include "transpiler/plan/planner.h"

namespace penstock::cost {

struct ExchangeTimes {
  std::int64_t allreduce_ns = 0, pserver_ns = 0;
};
// Of a step. `param`: its slices and its bytes in all. trainers is at least 2, pservers at least 1.
ExchangeTimes TimesOfExchange(const Volume& param, int trainers, int pservers, const Network& network);

// The request's configuration with what dense=auto comes to: `exchanges`, and `dense` as kAllreduce, or as
// kPserver if no parameter goes over rings. Equal times mean all-reduce: pservers are left with less to do.
// The errors of ValidateConfig and PlanUpdatesOnPservers, by whose slices it counts.
Result<plan::TranspileConfig> ChooseExchanges(const plan::PlanRequest& request);

}  // namespace penstock::cost
