// Makes a random program with a random configuration, and checks properties that every such job must have.
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

// A seed always gives the same job.
RandomJob MakeRandomJob(std::uint64_t seed);

struct Proof {
  // The first violated property, with details; "" if all hold: the plan is valid and parses back, check
  // reports nothing, a chosen exchange is the faster one, and every role program parses back from its text
  // and its bytes.
  Status holds;
  std::uint64_t digest = 0;  // of the plan and of all role programs' bytes
  int slices = 0;            // the number of slices of the parameter with the most
};
Proof Prove(const RandomJob& job);

}  // namespace penstock::test
