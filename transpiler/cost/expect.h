// Estimates the performance of a job on a network: exposed communication time, step time and scaling. A pure
// function of counts. Every number of the result can be computed by hand from the others; tools/plan prints
// how.
//
//   PENSTOCK_ASSIGN_OR_RETURN(Expectation e, Expect(job, cost, {.bits_per_second = 1e10, .step_ms = 50}));
//   e.efficiency     0.93: eight trainers do the work of 7.4
//
// The model. Every process has its own full-duplex link with bits_per_second in each direction. A link is
// busy for
//     time [ms] = bytes x 8 / bits_per_second x 1000 + messages x message_us / 1000
// and transfers of one process wait for its link. A trainer alone needs step_ms for a step, two thirds of it
// for the backward pass (which does two multiplications for each one of the forward pass). Gradients that
// travel during the backward pass cost only the time that exceeds it. All other transfers (the gradients that
// are ready last, ids and rows of tables, parameters) cost their whole time:
//     exposed push = max(0, overlapping - backward) + the rest        exposed pull = down
// If pservers exchange measures of gradients, they do so between the last gradient and the first update, so
// nothing hides that time (`told`); the pserver that sends or receives most determines it. In sync mode all
// trainers meet at a pserver at once, so its link carries the volume of all trainers, and the slower end
// determines each time:
//     step = step_ms + exposed push + told + exposed pull
// In async modes each trainer has its own pace, limited by the busiest pserver's link:
//     step = max(a trainer alone, busiest pserver's link for one step of every trainer)
// A communicator that runs in the background hides everything up to the time of the step; one that the
// program waits for (sync_communicator, half_async) hides nothing.
//
// The model leaves out framing, round-trip latency, congestion and the pservers' cores, so real jobs are
// slower. Set bits_per_second to the measured rate of a copy between two machines, not to the nominal rate of
// the card. message_us: one small gRPC call costs a core 20 us with many calls in flight (gRPC 1.51); Fluid
// 1.8.5, with one call at a time, needed 210 us.
//
// Comparison with measurements: all-reduce of 400 MB among 8 nodes at 10 Gbit/s took 1.0 s, and pushing and
// pulling it with 8, 4, 2, 1 pservers took 1.2, 2.0, 3.4, 6.5 s (MXNet's proposal for MPI all-reduce). The
// model gives 0.56 s, and 0.64, 1.28, 2.56, 5.12 s, because it counts only the time on the wire.
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
  int times = 1;            // the number of trainers whose steps meet there; 1 at a trainer
  Volume overlaps, others;  // of all of these steps; overlaps is empty for the direction down
  double overlaps_ms = 0, others_ms = 0;
  double exposed_ms = 0;
};

// Which computation hides communication.
enum class Hiding { kBackward, kNothing, kEverything };

struct Expectation {
  Hiding hiding = Hiding::kBackward;
  bool together = true;  // all trainers' steps meet at a pserver at once
  double backward_ms = 0;
  LinkEnd push_trainer, push_pserver, pull_trainer, pull_pserver;  // all-reduce: only push_trainer
  double exposed_push_ms = 0, exposed_pull_ms = 0;                 // of an exchange
  // Between push and pull: the pserver that is busiest with sending measures to others or receiving them.
  int telling_pserver = 0;
  double told_ms = 0, heard_ms = 0;
  double exposed_told_ms = 0;  // the longer of the two
  double trainer_ms = 0;       // time of a step that waits for no other trainer
  double pserver_ms = 0;       // async modes: the busiest pserver's link for a step of every trainer; else 0
  int busiest_pserver = 0;
  double step_ms = 0;
  double exposed_ms = 0;  // step_ms minus the time of a trainer alone
  double efficiency = 0;  // time of a trainer alone / step_ms
  double speedup = 0;     // trainers x efficiency
};

// kInvalidArgument E-cost-options: a rate or time is not positive.
Result<Expectation> Expect(const Job& job, const CostReport& cost, const Network& network);

}  // namespace penstock::cost
