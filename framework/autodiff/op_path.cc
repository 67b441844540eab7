#include "framework/autodiff/op_path.h"

#include <algorithm>

#include "framework/ir/block_uses.h"

namespace penstock {

std::vector<OpEntry> FindOpPath(const Block& block, const std::string& target, const NameSet& no_grad) {
  NameSet wanted = {target};
  std::vector<OpEntry> path;
  for (auto it = block.ops().rbegin(); it != block.ops().rend(); ++it) {
    const std::vector<std::string> outputs = it->op->OutputNames();
    const bool relevant = std::any_of(outputs.begin(), outputs.end(),
                                      [&](const std::string& name) { return wanted.contains(name); });
    if (!relevant) continue;
    path.push_back(*it);
    for (const std::string& name : it->op->InputNames()) {
      if (!no_grad.contains(name)) wanted.insert(name);
    }
  }
  std::reverse(path.begin(), path.end());
  return path;
}

NameSet FindUnusedOutputs(const std::vector<OpEntry>& path, const std::string& target,
                          const NameSet& no_grad) {
  NameSet used = {target};
  NameSet unused;
  for (auto it = path.rbegin(); it != path.rend(); ++it) {
    const std::vector<std::string> inputs = it->op->InputNames();
    // What an op that runs a block writes, the block may read too.
    const bool runs_block = !StartedBlocks(*it->op).empty();
    for (const std::string& name : runs_block ? std::vector<std::string>() : it->op->OutputNames()) {
      const bool in_place = std::find(inputs.begin(), inputs.end(), name) != inputs.end();
      if (!used.contains(name) && !in_place) unused.insert(name);
    }
    for (const std::string& name : inputs) {
      if (!no_grad.contains(name)) used.insert(name);
    }
  }
  return unused;
}

}  // namespace penstock
