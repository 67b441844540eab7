// The part of a plan for jobs whose trainers are ranks joined by rings: jobs without pservers, mode hybrid,
// and mode sync with on_uneven, which exchanges only numbers of examples. A ring is one communicator over all
// ranks; operations on different rings overlap.
//
//   plan {mode="grad_allreduce", trainers=2, ranks=["10.0.0.1:6170", "10.0.0.2:6170"], rings=2}
//   broadcast w : f32[13, 2048] on ring 0
//   broadcast b : f32[2048] on ring 1
//   reduce b@GRAD : f32[2048] on ring 1
//   reduce w@GRAD : f32[13, 2048] on ring 0
//
// The header has `node_ranks=8` if the 8 ranks of one machine reduce first, `average_every=4` if parameters
// are averaged only after every 4th step (in mode local_sgd_adaptive: the first number of steps), and
// `on_uneven="join"` if batches may be uneven.
#pragma once

#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/tensor/dtype.h"
#include "framework/tensor/shape.h"

namespace penstock::plan {

// A tensor that all ranks exchange, and its ring.
struct RingUse {
  std::string var;
  DType dtype = DType::kFp32;
  Shape shape;
  bool sparse = false;  // selected rows
  int ring = 0;
  friend bool operator==(const RingUse&, const RingUse&) = default;
};

struct PlacementPlan;

struct RankPlan {
  std::vector<std::string> addresses;  // one per rank, in order; empty: a job with pservers only
  int rings = 1;
  int node_ranks = 0;               // ranks per machine that reduce first; 0: no hierarchy
  int average_every = 1;            // steps
  std::vector<RingUse> broadcasts;  // rank 0's initial values, in this order
  std::vector<RingUse> reductions;  // gradients or updates that are summed, in the order of the program
  friend bool operator==(const RankPlan&, const RankPlan&) = default;
};

// Checks a plan with ranks: addresses and numbers are valid, rings exist, no variable is exchanged twice, and
// the mode allows the pservers. E-plan-*.
Status ValidateRanks(const PlacementPlan& plan);

}  // namespace penstock::plan
