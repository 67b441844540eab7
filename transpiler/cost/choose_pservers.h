// Recommends a number of pservers: MakePlan slices and places the job on 1, 2, 3 ... pservers, and the model
// of expect.h estimates each step time.
//
//   PENSTOCK_ASSIGN_OR_RETURN(PserverAdvice advice, ChoosePservers(job, {}, network, config));
//   advice.chosen       4
#pragma once

#include <cstdint>
#include <vector>

#include "framework/base/status.h"
#include "transpiler/cost/cost.h"
#include "transpiler/cost/expect.h"
#include "transpiler/cost/job.h"
#include "transpiler/plan/config.h"

namespace penstock::cost {

struct PserverChoice {
  int pservers = 0;
  Volume busiest_up, busiest_down;  // of the busiest pserver with all trainers, in one exchange
  Imbalance parameters;
  double step_ms = 0, efficiency = 0;
};

struct PserverAdvice {
  // Ascending: 1 to 64, then powers of two, up to the number of trainers; also the given number.
  std::vector<PserverChoice> tried;
  int chosen = 0;        // the fewest whose step takes at most kStepTolerance times the shortest step
  int best = 0;          // the fewest with the shortest step
  bool as_given = true;  // the new plan for the given number has the job's own pieces and places
};
inline constexpr double kStepTolerance = 1.02;

// `like` defines how parameters are sliced and placed; its addresses, trainers and mode are ignored. `tried`
// is empty if the job has no pservers, they hold nothing, or the program sends nothing.
//
// Errors: those of MakePlan, EstimateCost and Expect.
Result<PserverAdvice> ChoosePservers(const Job& job, const CostOptions& options, const Network& network,
                                     const plan::TranspileConfig& like);

// Returns the job on `pservers` pservers instead of its own, with the messages of its first trainer. Memory
// is left out.
Result<Job> WithPservers(const Job& job, int pservers, const plan::TranspileConfig& like);

// Returns a configuration that slices as the job does, as far as its pieces show: parameters are sliced if
// any of them has several pieces or none could have.
plan::TranspileConfig ConfigLike(const Job& job);

}  // namespace penstock::cost
