// Which ops of a block lie between its variables and some targets, and which of their outputs nobody uses.
#pragma once

#include <string>
#include <vector>

#include "framework/autodiff/grad_ops.h"
#include "framework/ir/program.h"
#include "framework/op/op_registry.h"

namespace penstock {

// The ops that the targets depend on, in program order. Dependence goes neither through variables in
// `no_grad` nor through ops that are declared without gradient. With inputs: of those, only ops that depend
// on an input.
std::vector<OpEntry> FindOpPath(const OpRegistry& registry, const Block& block, const NameSet& targets,
                                const NameSet& inputs, const NameSet& no_grad);

// Outputs of ops of the path that are no targets and that no later op of the path uses: their gradient is
// nil, so nobody writes it.
NameSet FindUnusedOutputs(const std::vector<OpEntry>& path, const NameSet& targets, const NameSet& no_grad);

}  // namespace penstock
