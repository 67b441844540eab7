// How many pservers a job is worth: the same job on 1, 2, 3 ... of them, cut and placed anew by MakePlan,
// each judged by expect.h's model.
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
  Volume busiest_up, busiest_down;  // with all trainers, in one exchange
  Imbalance parameters;
  double step_ms = 0, efficiency = 0;
};

struct PserverAdvice {
  // Ascending: 1 to 64, then doubled, up to one for each trainer or as given.
  std::vector<PserverChoice> tried;
  int chosen = 0;        // the fewest whose step takes at most kStepTolerance times the best's
  int best = 0;          // the fewest of the shortest step
  bool as_given = true;  // cut anew for the given number, pieces and places are the given ones
};
inline constexpr double kStepTolerance = 1.02;

// `like` says how parameters are cut and placed; its addresses, trainers and mode are not asked for. Of a job
// whose pservers hold nothing, or that has none, or whose program sends nothing, the list is empty. The
// errors of MakePlan, EstimateCost and Expect.
Result<PserverAdvice> ChoosePservers(const Job& job, const CostOptions& options, const Network& network,
                                     const plan::TranspileConfig& like);

// The job on `pservers` others: what its first trainer exchanges with them. Memory is left out.
Result<Job> WithPservers(const Job& job, int pservers, const plan::TranspileConfig& like);

// A configuration that cuts as the job's own pieces are cut, as far as these show it: with slices if any
// parameter has several.
plan::TranspileConfig ConfigLike(const Job& job);

}  // namespace penstock::cost
