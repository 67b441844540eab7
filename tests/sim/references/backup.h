// What sync training with backup trainers makes of a server's parameters, by one thread: each version is the
// one before and the mean of the gradients of some trainers, the same for all parameters.
#pragma once

#include <utility>
#include <vector>

#include "tests/sim/toy_job.h"

namespace penstock::test {

// Trainers, ascending, each with its own step in which it computed the gradient.
using BackupSet = std::vector<std::pair<int, std::uint64_t>>;

// The server's parameters after an update for each set.
ToyValues BackupReference(const ToyJob& job, int server, const std::vector<BackupSet>& sets);

}  // namespace penstock::test
