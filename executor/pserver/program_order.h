// Finds trainers that wait for each other because they run the programs of a job in different orders:
// trainer 0 waits in the discriminator's step for trainer 1, which waits in the generator's step for trainer
// 0.
#pragma once

#include <optional>
#include <vector>

#include "executor/pserver/pserver.h"

namespace penstock::pserver {

// kFailedPrecondition E-plan-order, with the program and the step of each of these trainers. nullopt if some
// trainer will go on. Only synchronous programs make trainers wait for each other. A trainer counts as
// waiting after it has reported that it waits (10 s), until its next message.
std::optional<Status> OrderError(const std::vector<const Pserver*>& programs);

}  // namespace penstock::pserver
