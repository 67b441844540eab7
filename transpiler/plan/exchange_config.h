// Which settings go with exchange=allreduce and exchange=auto.
#pragma once

#include "framework/base/status.h"
#include "transpiler/plan/config.h"

namespace penstock::plan {

// Only what mode sync of pservers has, without what it adds for servers that see all gradients.
// E-plan-exchange names the setting that does not go with it and says what to do; a figure of the network
// that is not above 0 is E-plan-exchange too.
Status ValidateExchange(const TranspileConfig& config);

}  // namespace penstock::plan
