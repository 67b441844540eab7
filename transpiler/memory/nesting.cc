#include "transpiler/memory/nesting.h"

#include <algorithm>

namespace penstock::memory {
namespace {

// By block: whether it and all blocks around it have an earlier parent and no forward block.
std::vector<bool> PlainBlocks(const Program& program) {
  std::vector<bool> plain;
  plain.reserve(static_cast<std::size_t>(program.block_count()));
  for (int b = 0; b < program.block_count(); ++b) {
    const int parent = program.block(b).parent();
    plain.push_back(program.block(b).forward_block() < 0 && parent < b &&
                    (parent < 0 || plain[static_cast<std::size_t>(parent)]));
  }
  return plain;
}

std::vector<int> PlainParents(const Program& program, const std::vector<bool>& plain) {
  std::vector<int> parents;
  parents.reserve(static_cast<std::size_t>(program.block_count()));
  for (int b = 0; b < program.block_count(); ++b)
    parents.push_back(plain[static_cast<std::size_t>(b)] ? std::max(-1, program.block(b).parent()) : -1);
  return parents;
}

}  // namespace

// Blocks follow those around them, so sizes are summed backwards and positions assigned forwards.
Nesting::Nesting(const std::vector<int>& around)
    : enter_(around.size()), leave_(around.size()), within_(around.size()) {
  std::vector<int> sizes(around.size(), 1);
  for (std::size_t b = around.size(); b-- > 0;) {
    if (around[b] >= 0) sizes[At(around[b])] += sizes[b];
  }
  std::vector<int> next(around.size());  // the position of the next child
  int next_root = 0;
  for (std::size_t b = 0; b < around.size(); ++b) {
    int& place = around[b] >= 0 ? next[At(around[b])] : next_root;
    enter_[b] = place;
    place += sizes[b];
    leave_[b] = place;
    next[b] = enter_[b] + 1;
    if (around[b] >= 0) within_[At(around[b])].push_back(static_cast<int>(b));
  }
}

int Nesting::StepToward(int inner, int outer) const {
  const std::vector<int>& steps = within_[At(outer)];
  const auto behind = std::upper_bound(steps.begin(), steps.end(), Enter(inner),
                                       [&](int enter, int block) { return enter < Enter(block); });
  return *std::prev(behind);
}

VarFinder::VarFinder(const Program& program)
    : program_(program), plain_(PlainBlocks(program)), nesting_(PlainParents(program, plain_)) {
  std::vector<int> walk(plain_.size());
  for (int b = 0; b < program.block_count(); ++b) walk[static_cast<std::size_t>(nesting_.Enter(b))] = b;
  for (const int b : walk) {
    if (!plain_[static_cast<std::size_t>(b)]) continue;
    for (const VarRef& var : program.block(b).vars()) Add(b, *var);
  }
}

void VarFinder::Add(int block, const Var& var) {
  Declarations& declarations = declared_[var.name];
  const Declaration* around = FindIn(declarations, block);
  declarations.push_back({.var = &var,
                          .block = block,
                          .around = around == nullptr ? -1 : static_cast<int>(around - declarations.data())});
}

// The last declaration before the block in the walk is nested in every declaration whose block encloses it.
const VarFinder::Declaration* VarFinder::FindIn(const Declarations& declarations, int block) const {
  const auto behind = std::upper_bound(
      declarations.begin(), declarations.end(), nesting_.Enter(block),
      [&](int enter, const Declaration& declaration) { return enter < nesting_.Enter(declaration.block); });
  int at = static_cast<int>(behind - declarations.begin()) - 1;
  while (at >= 0 && !nesting_.IsWithin(block, declarations[static_cast<std::size_t>(at)].block))
    at = declarations[static_cast<std::size_t>(at)].around;
  return at < 0 ? nullptr : &declarations[static_cast<std::size_t>(at)];
}

const Var* VarFinder::Find(int block, std::string_view name) const {
  if (!plain_[static_cast<std::size_t>(block)]) return program_.FindVar(block, name);
  const auto known = declared_.find(name);
  if (known == declared_.end()) return nullptr;
  const Declaration* found = FindIn(known->second, block);
  return found == nullptr ? nullptr : found->var;
}

}  // namespace penstock::memory
