// The reference for clipping by the norm over all gradients of all servers, on one thread: computes the norm
// of all gradients before it applies any.
#pragma once

#include <vector>

#include "tests/sim/toy_job.h"

namespace penstock::test {

// Versions 0 to `steps` of every parameter of a job with dense parameters. Trainer t leaves after `ends[t]`
// steps; its later gradients are zero.
std::vector<ToyValues> ClipReference(const ToyJob& job, int steps, const std::vector<int>& ends);

}  // namespace penstock::test
