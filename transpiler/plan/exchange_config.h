// Checks the settings that are combined with exchange=allreduce and exchange=auto.
#pragma once

#include "framework/base/status.h"
#include "transpiler/plan/config.h"

namespace penstock::plan {

// Allows only settings of mode sync, without those that need servers to see all gradients. kInvalidArgument
// E-plan-exchange: names the setting that is not allowed and what to do; also for a network setting that is
// not above 0.
Status ValidateExchange(const TranspileConfig& config);

}  // namespace penstock::plan
