// The reference for sync training with backup trainers, on one thread: each version of a server's parameters
// is the previous one updated with the mean of some trainers' gradients, the same trainers for all
// parameters.
#pragma once

#include <utility>
#include <vector>

#include "tests/sim/toy_job.h"

namespace penstock::test {

// The trainers, ascending, each with the step in which it computed the gradient.
using BackupSet = std::vector<std::pair<int, std::uint64_t>>;

// The server's parameters after one update per set.
ToyValues BackupReference(const ToyJob& job, int server, const std::vector<BackupSet>& sets);

}  // namespace penstock::test
