// The part of a plan that is for jobs whose trainers are joined by rings: equal ranks, without pservers, or
// beside them (mode hybrid, and sync with on_uneven, which exchanges nothing but counts of examples). A ring
// is one communicator over all ranks; with several, what is sent over one overlaps with what is sent over
// another.
//
//   plan {mode="grad_allreduce", trainers=2, ranks=["10.0.0.1:6170", "10.0.0.2:6170"], rings=2}
//   broadcast w : f32[13, 2048] on ring 0
//   broadcast b : f32[2048] on ring 1
//   reduce b@GRAD : f32[2048] on ring 1
//   reduce w@GRAD : f32[13, 2048] on ring 0
//
// The header says `node_ranks=8` where ranks of one machine add up among themselves first,
// `average_every=4` where parameters are averaged after every 4th step only (in mode local_sgd_adaptive the
// number that others follow), and `on_uneven="join"` where ranks may have unequal batches.
#pragma once

#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/tensor/dtype.h"
#include "framework/tensor/shape.h"

namespace penstock::plan {

// A tensor that all ranks exchange, and over which ring.
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
  std::vector<std::string> addresses;  // one a rank, in order; none: a job with pservers
  int rings = 1;
  int node_ranks = 0;               // 0: all ranks are alike
  int average_every = 1;            // steps
  std::vector<RingUse> broadcasts;  // rank 0's initial values, in this order
  std::vector<RingUse> reductions;  // gradients or updates that are added up, in the order of the program
  friend bool operator==(const RankPlan&, const RankPlan&) = default;
};

// Of a plan with ranks: addresses and numbers make sense, rings exist, nothing is exchanged twice, pservers
// are there only where they may be. E-plan-*.
Status ValidateRanks(const PlacementPlan& plan);

}  // namespace penstock::plan
