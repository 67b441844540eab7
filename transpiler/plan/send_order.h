// The order in which gradients are placed on pservers.
#pragma once

#include <cstdint>
#include <vector>

namespace penstock::plan {

// 0, 1, ..., count-1 as Fluid shuffles them when parameters are not sliced (biases and weights alternate in
// name order, and round robin would put all weights on one server): NumPy's legacy shuffle, started from the
// program's random_seed. Fluid draws from NumPy's global generator; this is the same sequence from one of its
// own, so that the user's is left alone.
std::vector<int> ShuffledSendOrder(int count, std::int64_t random_seed);

}  // namespace penstock::plan
