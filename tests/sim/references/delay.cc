#include "tests/sim/references/delay.h"

namespace penstock::test {

std::vector<std::vector<float>> ReplayDelayed(const AsyncChunk& chunk, float lambda,
                                              const std::vector<DelayedUpdate>& updates) {
  std::vector<AsyncUpdate> corrected;
  for (const DelayedUpdate& delayed : updates) {
    const std::vector<float> now = chunk.Replay(corrected).back();
    AsyncUpdate& update = corrected.emplace_back(delayed.update);
    for (std::size_t i = 0; i < now.size(); ++i) {
      const float g = delayed.update.gradient[i];
      const float moved = now[i] - delayed.read[i];
      update.gradient[i] = g + moved * g * g * lambda;
    }
  }
  return chunk.Replay(corrected);
}

}  // namespace penstock::test
