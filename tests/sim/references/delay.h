// The reference for delay compensation, on one thread: corrects each gradient by the change of the chunk
// since its trainer read it, and then applies it like an asynchronous gradient.
//
//   const std::vector<std::vector<float>> versions = ReplayDelayed(reference, 0.5f, updates);
#pragma once

#include <vector>

#include "tests/sim/references/async.h"

namespace penstock::test {

struct DelayedUpdate {
  AsyncUpdate update;
  std::vector<float> read;  // the chunk as read by the trainer that sent the gradient
};

// The chunk before the first update and after each.
std::vector<std::vector<float>> ReplayDelayed(const AsyncChunk& chunk, float lambda,
                                              const std::vector<DelayedUpdate>& updates);

}  // namespace penstock::test
