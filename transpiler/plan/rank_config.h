// Checks of a configuration without pservers, and what they share with the checks of one with them.
#pragma once

#include "framework/base/status.h"
#include "transpiler/plan/config.h"

namespace penstock::plan {

// Trainers exist, and those whose programs are wanted are among them. E-plan-trainers, E-plan-trainer-id.
Status ValidateTrainers(const TranspileConfig& config);

// nccl2 and collective: E-plan-rank-addresses, E-plan-rank-dup, E-plan-current-endpoint, E-plan-rings,
// E-plan-node-ranks, E-plan-rank-single, E-plan-local-sgd-steps.
Status ValidateRankConfig(const TranspileConfig& config);

// What a job with pservers and rings needs: E-plan-rank-addresses, E-plan-rank-dup, E-plan-rings,
// E-plan-rank-single.
Status ValidateHybridRanks(const TranspileConfig& config);
// What mode sync needs with on_uneven: E-plan-rank-addresses, E-plan-rank-dup.
Status ValidateUnevenRanks(const TranspileConfig& config);

}  // namespace penstock::plan
