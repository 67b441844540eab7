// Finds the ops of a program that a registry does not know. Programs of later versions, or of libraries that
// are not loaded, have them; such a program can be read, shown and edited, but those ops cannot run.
#pragma once

#include <string>

#include "framework/ir/program.h"
#include "framework/op/op_registry.h"

namespace penstock {

// The unknown types in all blocks, sorted, with the number of their ops: "matmul_v2 (13 ops), rnn (1 op)".
// Empty if all are known.
std::string UnknownOps(const OpRegistry& ops, const Program& program);

}  // namespace penstock
