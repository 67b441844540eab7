// Makes random training programs as a front end would: layers with new, shared or frozen parameters, joined
// activations, statistics, an optimizer with its state, weight decay, schedules, clipping.
//
//   const RandomNetwork network = MakeRandomNetwork(AllOps(), seed);
//   Transpile(AllOps(), network.main, network.startup, config)
//
// The programs pass the verifier. A seed gives the same programs in every process.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "framework/ir/program.h"
#include "framework/op/op_registry.h"

namespace penstock::test {

// Draws by remainder, because standard distributions differ between libraries.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : generator_(seed) {}
  int Below(int n) { return static_cast<int>(generator_() % static_cast<std::uint64_t>(n)); }
  int Between(int low, int high) { return low + Below(high - low + 1); }
  bool OneIn(int n) { return Below(n) == 0; }
  template <typename Range>
  const auto& Of(const Range& range) {
    return range[generator_() % std::size(range)];
  }

 private:
  std::mt19937_64 generator_;
};

struct NetworkOptions {
  // Use small extents, so that the program can run. Otherwise extents include 1, primes, and numbers that
  // give parameters of terabytes.
  bool runnable = false;
  // Include lookups of sparse tables.
  bool tables = false;
  // Include output layers with sparse gradients (hsigmoid, nce), and lookups in blocks that run on a
  // condition.
  bool sparse_layers = false;
};

struct RandomNetwork {
  Program main, startup;
  std::string loss;
  std::string optimizer;  // the op's type
  // The variables to feed; the extent of the batch is unknown.
  std::vector<std::string> feeds;
  std::map<std::string, Dim> below;  // by feed of integers: they must be less
  int params = 0;                    // trainable and frozen
  int shared = 0;                    // uses of a parameter beyond its first
  int frozen = 0;
  int tables = 0;         // sparse tables with lookups
  bool schedule = false;  // the learning rate changes from step to step
  bool clipped = false;
  bool clipped_together = false;  // by a norm over several gradients
  bool decayed = false;           // some parameter has weight decay
};

// The optimizers that need no input beyond parameter, gradient, learning rate and state.
std::vector<const OpDef*> PlainOptimizers(const OpRegistry& ops);

RandomNetwork MakeRandomNetwork(const OpRegistry& ops, std::uint64_t seed,
                                const NetworkOptions& options = {});

}  // namespace penstock::test
