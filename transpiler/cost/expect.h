// What to expect of a job on a network: time of communication that nothing hides, step time, scaling, and how
// many pservers are worth having. A pure function of counts; every number of the result can be worked out by
// hand from the others, and tools/plan prints how.
//
//   PENSTOCK_ASSIGN_OR_RETURN(Expectation e, Expect(job, cost, {.bits_per_second = 1e10, .step_ms = 50}));
//   e.efficiency     0.93: eight trainers do the work of 7.4
//
// The model. Every process has a link of its own that carries bits_per_second each way at once; a link is
// busy for
//     time [ms] = bytes x 8 / bits_per_second x 1000 + messages x message_us / 1000
// and what meets at a process waits for its link. A trainer alone needs step_ms for a step, two thirds of it
// for the backward pass (which multiplies twice where the forward pass multiplies once). Gradients that
// travel while the backward pass goes on cost only what exceeds it; everything else (those that are ready
// last, ids and rows of tables, parameters) costs its whole time:
//     exposed push = max(0, overlapping - backward) + the rest        exposed pull = down
// Where pservers tell each other what they have measured, they do so when all gradients are in and nothing is
// updated: nothing hides that either, and the one that tells or hears most decides.
// In sync mode all trainers meet at a pserver at once, so its link counts as many times as there are
// trainers, and the slower end decides:
//     step = step_ms + exposed push + told + exposed pull
// In async modes each trainer has its own pace, and a pserver takes in no more steps than its link carries:
//     step = max(a trainer alone, busiest pserver's link for one step of every trainer)
// A communicator that works beside the program hides everything up to the time of the step; one that the
// program waits for (sync_communicator, half_async) hides nothing.
//
// What is left out, so that real jobs are slower: framing, latency of a round trip, congestion and the
// pservers' cores. Set bits_per_second to what a copy between two of the machines reaches, not to what the
// card is called. message_us: 20 is what one small gRPC call costs a core with many in flight (gRPC 1.51);
// Fluid 1.8.5, one call at a time, needed 210.
//
// Against measurements: all-reduce of 400 MB among 8 nodes at 10 Gbit/s took 1.0 s, and pushing and pulling
// it with 8, 4, 2, 1 pservers 1.2, 2.0, 3.4, 6.5 s (MXNet's proposal for MPI all-reduce); the model says 0.56
// and 0.64, 1.28, 2.56, 5.12 s, the times of the wire alone.
#pragma once

#include <vector>

#include "framework/base/status.h"
#include "transpiler/cost/cost.h"
#include "transpiler/cost/job.h"

namespace penstock::cost {

struct Network {
  double bits_per_second = 0;
  double step_ms = 0;  // of one trainer alone, update included
  double message_us = 20;
};

// How long `volume` keeps a link busy.
double LinkMs(const Volume& volume, const Network& network);

// One end of the exchange: the busiest trainer or pserver, for one direction.
struct LinkEnd {
  int index = 0;
  int times = 1;            // steps that meet there: of all trainers at a pserver, 1 at a trainer
  Volume overlaps, others;  // of all of them; overlaps are empty for what comes down
  double overlaps_ms = 0, others_ms = 0;
  double exposed_ms = 0;
};

// What of a step's communication the step's own work hides.
enum class Hiding { kBackward, kNothing, kEverything };

struct Expectation {
  Hiding hiding = Hiding::kBackward;
  bool together = true;  // all trainers' steps meet at a pserver at once
  double backward_ms = 0;
  LinkEnd push_trainer, push_pserver, pull_trainer, pull_pserver;  // all-reduce: push_trainer alone
  double exposed_push_ms = 0, exposed_pull_ms = 0;                 // of an exchange
  // Between the two: the pserver that is busiest with telling the others, or with hearing them.
  int telling_pserver = 0;
  double told_ms = 0, heard_ms = 0;
  double exposed_told_ms = 0;  // the longer of the two
  double trainer_ms = 0;       // of a step that waits for nobody else's
  double pserver_ms = 0;  // async modes: of the busiest pserver's link, for a step of every trainer; else 0
  int busiest_pserver = 0;
  double step_ms = 0;
  double exposed_ms = 0;  // step_ms less the time of a trainer alone
  double efficiency = 0;  // time of a trainer alone / step_ms
  double speedup = 0;     // trainers x efficiency
};

// kInvalidArgument E-cost-options: a rate or a time that is not above 0.
Result<Expectation> Expect(const Job& job, const CostReport& cost, const Network& network);

}  // namespace penstock::cost
