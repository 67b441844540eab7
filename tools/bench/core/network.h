// The network on which transpile speed is measured: layers of 8 units, each with a weight and a bias; the
// same network as in front_end.py.
#pragma once

#include "framework/ir/program.h"
#include "framework/op/op_registry.h"

namespace penstock::bench {

struct Network {
  Program main, startup;
};

// Returns the programs after minimize with sgd. `params` is even and at least 2.
Network MakeNetwork(const OpRegistry& ops, int params);

}  // namespace penstock::bench
