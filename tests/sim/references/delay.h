// What delay compensation means, in one thread: each gradient is corrected by what has changed in the chunk
// since its trainer read it, and then applied as any asynchronous one.
//
//   const std::vector<std::vector<float>> versions = ReplayDelayed(reference, 0.5f, updates);
#pragma once

#include <vector>

#include "tests/sim/references/async.h"

namespace penstock::test {

struct DelayedUpdate {
  AsyncUpdate update;
  std::vector<float> read;  // the chunk, as the trainer read it that sent the gradient
};

// The chunk before the first update and after each.
std::vector<std::vector<float>> ReplayDelayed(const AsyncChunk& chunk, float lambda,
                                              const std::vector<DelayedUpdate>& updates);

}  // namespace penstock::test
