// Chooses, for exchange=auto, which dense gradients trainers all-reduce and which parameters pservers update.
//
//   PENSTOCK_ASSIGN_OR_RETURN(config, ChooseExchanges({.ops = AllOps(), .main = main, .startup = startup,
//                                                      .config = config}));
//   config.exchanges     one choice for each trained parameter, with its reason
//
// The model is that of expect.h: each byte and each message keeps a link busy. For one parameter of S bytes
// in k slices, n trainers and m pservers, the time of an exchange is:
//
//   all-reduce   the time of a rank's link for 2(n-1) messages and 2S(n-1)/n bytes
//   pservers     twice (up and down) the larger of two times: of a trainer's link for k messages and S bytes,
//                and of a pserver's link for nk/m messages and nS/m bytes
//
// The model assumes that parameters are spread evenly over pservers, as placement aims to do. It ignores
// overlap with the backward pass, because that depends on the time of a step, which programs do not state.
// Typical result: with more than two trainers and enough pservers, small parameters go to pservers and large
// ones over rings.
#pragma once

#include <cstdint>

#include "framework/base/status.h"
#include "transpiler/cost/expect.h"
#include "transpiler/plan/planner.h"

namespace penstock::cost {

struct ExchangeTimes {
  std::int64_t allreduce_ns = 0, pserver_ns = 0;
};
// The times of one parameter's exchange in one step. `param` has the number of its slices as messages, and
// its total bytes. trainers is at least 2, pservers at least 1.
ExchangeTimes TimesOfExchange(const Volume& param, int trainers, int pservers, const Network& network);

// Returns the request's configuration with `exchanges` filled in and `dense` no longer kAuto: kAllreduce, or
// kPserver if no parameter goes over rings. If both times are equal, it chooses all-reduce, which leaves less
// work to pservers. Numbers of slices are those of PlanUpdatesOnPservers.
//
// Errors: those of ValidateConfig and PlanUpdatesOnPservers.
Result<plan::TranspileConfig> ChooseExchanges(const plan::PlanRequest& request);

}  // namespace penstock::cost
