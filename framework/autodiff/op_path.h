// Finds the ops of a block between its variables and some targets, and which of their outputs are unused.
#pragma once

#include <string>
#include <vector>

#include "framework/autodiff/grad_ops.h"
#include "framework/ir/program.h"
#include "framework/op/op_registry.h"

namespace penstock {

// Returns the ops on which the targets depend, in program order. Dependence passes neither through variables
// in `no_grad` nor through ops declared without a gradient. If inputs are given, returns only the ops that
// also depend on an input.
std::vector<OpEntry> FindOpPath(const OpRegistry& registry, const Block& block, const NameSet& targets,
                                const NameSet& inputs, const NameSet& no_grad);

// Returns the outputs of the path's ops that are not targets and that no later op of the path uses. Their
// gradient is zero, so no op writes it.
NameSet FindUnusedOutputs(const std::vector<OpEntry>& path, const NameSet& targets, const NameSet& no_grad);

}  // namespace penstock
