// Which ops of a block lie between its variables and some targets, and which of their outputs nobody uses.
#pragma once

#include <string>
#include <vector>

#include "framework/autodiff/grad_ops.h"
#include "framework/ir/program.h"

namespace penstock {

// The ops that the targets depend on, in program order. Dependence does not go through variables in
// `no_grad`. With inputs: of those, only ops that depend on an input.
std::vector<OpEntry> FindOpPath(const Block& block, const NameSet& targets, const NameSet& inputs,
                                const NameSet& no_grad);

// Outputs of ops of the path that are no targets and that no later op of the path uses: their gradient is
// nil, so nobody writes it.
NameSet FindUnusedOutputs(const std::vector<OpEntry>& path, const NameSet& targets, const NameSet& no_grad);

}  // namespace penstock
