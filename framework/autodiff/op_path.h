// Which ops of a block lie between its variables and a target, and which of their outputs nobody uses.
#pragma once

#include <string>
#include <vector>

#include "framework/autodiff/grad_ops.h"
#include "framework/ir/program.h"

namespace penstock {

// The ops that `target` depends on, in program order. Dependence does not go through variables in `no_grad`.
std::vector<OpEntry> FindOpPath(const Block& block, const std::string& target, const NameSet& no_grad);

// Outputs of ops of the path that neither the target nor a later op of the path uses: their gradient is nil,
// so nobody writes it.
NameSet FindUnusedOutputs(const std::vector<OpEntry>& path, const std::string& target,
                          const NameSet& no_grad);

}  // namespace penstock
