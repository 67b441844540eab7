// Checks a configuration without pservers; also the checks that configurations with pservers share.
#pragma once

#include "framework/base/status.h"
#include "transpiler/plan/config.h"

namespace penstock::plan {

// There is at least one trainer, and trainer_ids are in range. E-plan-trainers, E-plan-trainer-id.
Status ValidateTrainers(const TranspileConfig& config);

// nccl2 and collective: E-plan-rank-addresses, E-plan-rank-dup, E-plan-current-endpoint, E-plan-rings,
// E-plan-node-ranks, E-plan-rank-single, E-plan-local-sgd-steps.
Status ValidateRankConfig(const TranspileConfig& config);

// Checks the ranks of a job with pservers and rings: E-plan-rank-addresses, E-plan-rank-dup, E-plan-rings,
// E-plan-rank-single.
Status ValidateHybridRanks(const TranspileConfig& config);
// Checks the ranks of mode sync with on_uneven: E-plan-rank-addresses, E-plan-rank-dup.
Status ValidateUnevenRanks(const TranspileConfig& config);

}  // namespace penstock::plan
