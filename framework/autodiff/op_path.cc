#include "framework/autodiff/op_path.h"

#include <algorithm>
#include <span>

#include "framework/ir/block_uses.h"
#include "framework/ir/mentions.h"

namespace penstock {

namespace {

bool AnyOf(std::span<const std::string> names, const NameSet& set) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) { return set.contains(name); });
}

std::vector<OpEntry> ThatDependOn(NameSet inputs, const std::vector<OpEntry>& ops, const NameSet& no_grad) {
  std::vector<OpEntry> out;
  for (const OpEntry& entry : ops) {
    if (!AnyOf(entry.op->InputNames(), inputs)) continue;
    out.push_back(entry);
    for (std::string& name : entry.op->OutputNames()) {
      if (!no_grad.contains(name)) inputs.insert(std::move(name));
    }
  }
  return out;
}

}  // namespace

std::vector<OpEntry> FindOpPath(const OpRegistry& registry, const Block& block, const NameSet& targets,
                                const NameSet& inputs, const NameSet& no_grad) {
  NameSet wanted = targets;
  std::vector<OpEntry> path;
  const std::vector<OpEntry> ops = inputs.empty() ? block.ops() : ThatDependOn(inputs, block.ops(), no_grad);
  for (auto it = ops.rbegin(); it != ops.rend(); ++it) {
    if (!AnyOf(it->op->OutputNames(), wanted)) continue;
    if (const OpDef* def = registry.Find(it->op->type()); def != nullptr && def->no_grad()) continue;
    path.push_back(*it);
    for (const std::string& name : it->op->InputNames()) {
      if (!no_grad.contains(name)) wanted.insert(name);
    }
  }
  std::reverse(path.begin(), path.end());
  return path;
}

NameSet FindUnusedOutputs(const std::vector<OpEntry>& path, const NameSet& targets, const NameSet& no_grad) {
  NameSet used = targets;
  NameSet unused;
  for (auto it = path.rbegin(); it != path.rend(); ++it) {
    // If an op runs a block, the block may also read the variables that the op writes.
    const bool runs_block = !StartedBlocks(*it->op).empty();
    for (const std::string& name : runs_block ? std::vector<std::string>() : it->op->OutputNames()) {
      if (!used.contains(name) && !Reads(*it->op, name)) unused.insert(name);
    }
    for (const std::string& name : it->op->InputNames()) {
      if (!no_grad.contains(name)) used.insert(name);
    }
  }
  return unused;
}

}  // namespace penstock
