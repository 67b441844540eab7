#include "framework/ir/prune.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <variant>

#include "framework/ir/block_uses.h"

namespace penstock {
namespace {

bool IsForTraining(OpRole role) {
  return Has(role, OpRole::kBackward) || Has(role, OpRole::kOptimize) || Has(role, OpRole::kLrSched);
}

// Block 0, the blocks that its ops run directly or through others, and the parents and forward blocks of all
// these. In ascending order.
std::set<int> BlocksInUse(const Program& program) {
  std::set<int> used;
  std::vector<int> found = {0};
  while (!found.empty()) {
    const int block = found.back();
    found.pop_back();
    if (block < 0 || block >= program.block_count() || !used.insert(block).second) continue;
    for (const OpEntry& entry : program.block(block).ops()) {
      const std::vector<int> started = StartedBlocks(*entry.op);
      found.insert(found.end(), started.begin(), started.end());
    }
    found.push_back(program.block(block).parent());
    found.push_back(program.block(block).forward_block());
  }
  return used;
}

// Returns the op with the new numbers of its blocks.
Op Renumbered(const Op& op, const std::map<int, int>& number) {
  Op out = op;
  const auto renumber = [&](BlockRef& ref) {
    if (const auto it = number.find(ref.index); it != number.end()) ref.index = it->second;
  };
  for (const NamedAttr& attr : op.attrs()) {
    if (const auto* ref = std::get_if<BlockRef>(&attr.value)) {
      BlockRef renamed = *ref;
      renumber(renamed);
      out.Set(attr.name, renamed);
    } else if (const auto* refs = std::get_if<std::vector<BlockRef>>(&attr.value)) {
      std::vector<BlockRef> renamed = *refs;
      std::for_each(renamed.begin(), renamed.end(), renumber);
      out.Set(attr.name, std::move(renamed));
    }
  }
  return out;
}

// Removes the blocks that are not in use and renumbers the others.
Program WithoutIdleBlocks(const Program& program) {
  const std::set<int> used = BlocksInUse(program);
  if (static_cast<int>(used.size()) == program.block_count()) return program;
  std::map<int, int> number;
  for (const int block : used) number.emplace(block, static_cast<int>(number.size()));
  Program out;
  out.mutable_meta() = program.meta();
  for (const int from : used) {
    const Block& old = program.block(from);
    Block& block = from == 0 ? out.MutableBlock(0) : out.AddBlock(number.at(old.parent()));
    if (old.has_forward_block()) {
      const auto forward = number.find(old.forward_block());
      block.set_forward_block(forward == number.end() ? -1 : forward->second);
    }
    for (const VarRef& var : old.vars()) block.AddVarRef(var);
    for (const OpEntry& entry : old.ops()) block.Append(Renumbered(*entry.op, number));
  }
  return out;
}

// Keeps these ops in block 0 and the blocks in use. Of block 0's variables, keeps those that a remaining op
// names, and those in `also`.
Program KeepOnly(Program program, std::vector<OpEntry> ops, const std::set<std::string>& also) {
  program.MutableBlock(0).SetOps(std::move(ops));
  program = WithoutIdleBlocks(program);
  std::set<std::string> named = also;
  for (int b = 0; b < program.block_count(); ++b) {
    for (const OpEntry& entry : program.block(b).ops()) {
      for (std::string& name : entry.op->InputNames()) named.insert(std::move(name));
      for (std::string& name : entry.op->OutputNames()) named.insert(std::move(name));
    }
  }
  std::set<std::string, std::less<>> gone;
  for (const VarRef& var : program.main().vars()) {
    if (!named.contains(var->name)) gone.insert(var->name);
  }
  program.MutableBlock(0).RemoveVars(gone);
  return program;
}

}  // namespace

Program CloneForTest(const Program& program) {
  std::vector<OpEntry> kept;
  for (const OpEntry& entry : program.main().ops()) {
    if (!IsForTraining(entry.op->role())) kept.push_back(entry);
  }
  // As in Fluid, a program without training ops keeps all its variables, even those that no op uses.
  const bool trains = kept.size() < program.main().ops().size();
  Program out = trains ? KeepOnly(program, std::move(kept), {}) : program;
  for (int b = 0; b < out.block_count(); ++b) {
    Block& block = out.MutableBlock(b);
    const std::vector<OpEntry> ops = block.ops();
    for (const OpEntry& entry : ops) {
      if (entry.op->FindAttr("is_test") == nullptr) continue;
      Op op = *entry.op;
      op.Set("is_test", true);
      block.Replace(entry.id, std::move(op));
    }
  }
  return out;
}

Result<Program> PruneTo(const Program& program, const std::vector<std::string>& feeds,
                        const std::vector<std::string>& targets, const std::set<OpId>& target_ops) {
  const std::set<std::string> fed(feeds.begin(), feeds.end());
  std::set<std::string> needed;
  for (const std::string& target : targets) {
    if (program.main().FindVar(target) == nullptr) {
      return InvalidArgument("E-prune-target", "target ", target, " is no variable of the program");
    }
    needed.insert(target);
  }
  std::vector<OpEntry> kept;
  const std::vector<OpEntry>& ops = program.main().ops();
  for (auto entry = ops.rbegin(); entry != ops.rend(); ++entry) {
    const std::vector<std::string> written = entry->op->OutputNames();
    const bool wanted = std::any_of(written.begin(), written.end(), [&](const std::string& name) {
      return needed.contains(name) && !fed.contains(name);
    });
    if (!wanted && !target_ops.contains(entry->id)) continue;
    for (std::string& name : entry->op->InputNames()) needed.insert(std::move(name));
    kept.push_back(*entry);
  }
  std::reverse(kept.begin(), kept.end());
  std::set<std::string> also = fed;
  also.insert(targets.begin(), targets.end());
  return KeepOnly(program, std::move(kept), also);
}

}  // namespace penstock
