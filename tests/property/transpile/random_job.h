// A random program together with a random way to distribute it, and what must hold of every such job.
#pragma once

#include <cstdint>
#include <string>

#include "framework/base/status.h"
#include "tests/support/random_network.h"
#include "transpiler/plan/config.h"

namespace penstock::test {

struct RandomJob {
  RandomNetwork network;
  plan::TranspileConfig config;
};

// The same seed gives the same job.
RandomJob MakeRandomJob(std::uint64_t seed);

struct Proof {
  // The first property that does not hold, with what it met: the plan is valid and reads back, check finds
  // nothing wrong, a chosen exchange is the faster one, every role program reads back from its text and from
  // its bytes.
  Status holds;
  std::uint64_t digest = 0;  // of the plan and of all role programs' bytes
  int slices = 0;            // of the parameter that was cut most
};
Proof Prove(const RandomJob& job);

}  // namespace penstock::test
