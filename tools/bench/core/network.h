// The network that transpile speed is measured on: layers of 8 units with a weight and a bias each, the same
// that ../shared/peers/transpile_bench.py builds in Python.
#pragma once

#include "framework/ir/program.h"
#include "framework/op/op_registry.h"

namespace penstock::bench {

struct Network {
  Program main, startup;
};

// `params` is even and at least 2. With sgd's updates.
Network MakeNetwork(const OpRegistry& ops, int params);

}  // namespace penstock::bench
