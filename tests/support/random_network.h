// Training programs at random, built as a front end builds them: layers with new, shared or frozen
// parameters, joined activations, statistics, an optimizer with its state, weight decay, schedules, clipping.
//
//   const RandomNetwork network = MakeRandomNetwork(AllOps(), seed);
//   Transpile(AllOps(), network.main, network.startup, config)
//
// The programs verify, and are what the same seed gives in every process.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "framework/ir/program.h"
#include "framework/op/op_registry.h"

namespace penstock::test {

// Standard distributions differ between libraries; the remainder does not.
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
  // Extents of a few elements, so that the program can be run. Otherwise among them are 1, primes, and ones
  // that make a parameter of terabytes.
  bool runnable = false;
  // With lookups of sparse tables.
  bool tables = false;
};

struct RandomNetwork {
  Program main, startup;
  std::string loss;
  std::string optimizer;  // the op's type
  // What has to be fed; the batch's extent is unknown.
  std::vector<std::string> feeds;
  int params = 0;  // with trainable ones and frozen ones
  int shared = 0;  // uses of a parameter beyond its first
  int frozen = 0;
  int tables = 0;         // that are looked up
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
