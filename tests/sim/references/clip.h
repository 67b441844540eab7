// What clipping by the norm over all gradients makes of all servers' parameters, by one thread: every
// gradient is measured before any is applied.
#pragma once

#include <vector>

#include "tests/sim/toy_job.h"

namespace penstock::test {

// Versions 0 to `steps` of every parameter, of a job whose parameters are dense. Of a trainer t that leaves
// after `ends[t]` steps, later gradients are zeros.
std::vector<ToyValues> ClipReference(const ToyJob& job, int steps, const std::vector<int>& ends);

}  // namespace penstock::test
