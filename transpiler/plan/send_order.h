// The order in which gradients are placed on pservers.
#pragma once

#include <cstdint>
#include <vector>

namespace penstock::plan {

// Returns 0, 1, ..., count-1 in the order in which Fluid shuffles unsliced parameters. (In name order, biases
// and weights alternate, so round robin would put all weights on one server.) The shuffle is NumPy's legacy
// shuffle, seeded with the program's random_seed. Fluid draws from NumPy's global generator; this function
// draws the same sequence from its own generator, so that the user's is not changed.
std::vector<int> ShuffledSendOrder(int count, std::int64_t random_seed);

}  // namespace penstock::plan
