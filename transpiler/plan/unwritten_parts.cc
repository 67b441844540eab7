#include "transpiler/plan/unwritten_parts.h"

#include <set>
#include <string>
#include <vector>

#include "framework/base/view_map.h"

namespace penstock::plan {
namespace {

bool AddsUpGradients(const Op& op) { return op.type() == "sum" && Has(op.role(), OpRole::kBackward); }

// The parts of all sums of gradients, and whether an op writes them.
ViewMap<bool> PartsOf(const Program& program) {
  ViewMap<bool> parts;
  for (int block = 0; block < program.block_count(); ++block) {
    for (const OpEntry& entry : program.block(block).ops()) {
      if (!AddsUpGradients(*entry.op)) continue;
      for (const Slot& slot : entry.op->inputs()) {
        for (const std::string& name : slot.args) parts.emplace(name, false);
      }
    }
  }
  if (parts.empty()) return parts;
  for (int block = 0; block < program.block_count(); ++block) {
    for (const OpEntry& entry : program.block(block).ops()) {
      for (const Slot& slot : entry.op->outputs()) {
        for (const std::string& name : slot.args) {
          if (const auto part = parts.find(name); part != parts.end()) part->second = true;
        }
      }
    }
  }
  return parts;
}

bool HoldsSomething(const Program& program, int block, const std::string& name) {
  const Var* var = program.FindVar(block, name);
  return var != nullptr && (var->persistable || var->facts.is_data);
}

// Replaces undeclared gradients by @EMPTY@ in the inputs of backward ops that run a block or are inside a
// block.
void EmptyUndeclared(const Program& main, std::optional<Program>& out) {
  for (int block = 0; block < main.block_count(); ++block) {
    for (const OpEntry& entry : main.block(block).ops()) {
      const bool of_block = block != 0 || entry.op->may_name_blocks();
      if (!of_block || !Has(entry.op->role(), OpRole::kBackward)) continue;
      Op op = *entry.op;
      bool changed = false;
      for (Slot slot : entry.op->inputs()) {
        for (std::string& name : slot.args) {
          if (name == kEmptyVarName || main.FindVar(block, name) != nullptr) continue;
          name = kEmptyVarName;
          changed = true;
        }
        op.AddInput(slot.name, std::move(slot.args));
      }
      if (!changed) continue;
      if (!out) out = main;
      out->MutableBlock(block).Replace(entry.id, std::move(op));
    }
  }
}

}  // namespace

std::optional<Program> WithoutUnwrittenParts(const Program& main) {
  const ViewMap<bool> parts = PartsOf(main);
  std::optional<Program> out;
  EmptyUndeclared(main, out);
  std::set<std::string, std::less<>> gone;
  for (int block = 0; block < main.block_count(); ++block) {
    for (const OpEntry& entry : main.block(block).ops()) {
      if (!AddsUpGradients(*entry.op)) continue;
      std::vector<std::string> kept;
      for (const std::string& name : entry.op->Input("X")) {
        if (parts.find(name)->second || HoldsSomething(main, block, name)) kept.push_back(name);
      }
      if (kept.empty() || kept.size() == entry.op->Input("X").size()) continue;
      for (const std::string& name : entry.op->Input("X")) {
        if (!parts.find(name)->second) gone.insert(name);
      }
      if (!out) out = main;
      Op op = *entry.op;
      out->MutableBlock(block).Replace(entry.id, op.AddInput("X", std::move(kept)));
    }
  }
  if (!out) return out;
  for (int block = 0; block < out->block_count(); ++block) {
    for (const OpEntry& entry : out->block(block).ops()) {
      for (const auto& names : {entry.op->InputNames(), entry.op->OutputNames()}) {
        for (const std::string& name : names) gone.erase(name);
      }
    }
  }
  for (int block = 0; block < out->block_count(); ++block) out->MutableBlock(block).RemoveVars(gone);
  return out;
}

}  // namespace penstock::plan
