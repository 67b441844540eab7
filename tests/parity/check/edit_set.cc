#include "tests/parity/check/edit_set.h"

namespace penstock::test {

std::optional<OpAt> FindOp(const Program& program, int block, const std::string& type, int n) {
  if (block >= program.block_count()) return std::nullopt;
  for (const OpEntry& entry : program.block(block).ops()) {
    if (entry.op->type() == type && n-- == 0) return OpAt{block, entry.id};
  }
  return std::nullopt;
}

std::optional<OpAt> FindInner(const Program& program, const std::string& type, int n) {
  for (int block = 1; block < program.block_count(); ++block) {
    for (const OpEntry& entry : program.block(block).ops()) {
      if (entry.op->type() == type && n-- == 0) return OpAt{block, entry.id};
    }
  }
  return std::nullopt;
}

std::optional<OpAt> FindIf(const Program& program, const std::function<bool(const Op&)>& holds) {
  for (int block = 0; block < program.block_count(); ++block) {
    for (const OpEntry& entry : program.block(block).ops()) {
      if (holds(*entry.op)) return OpAt{block, entry.id};
    }
  }
  return std::nullopt;
}

const Op& OpOf(const Program& program, OpAt at) { return *program.block(at.block).FindOp(at.id); }

void Remove(Program& program, OpAt at) { program.MutableBlock(at.block).Remove(at.id); }

void Repeat(Program& program, OpAt at) {
  Op op = OpOf(program, at);
  Block& block = program.MutableBlock(at.block);
  block.Insert(block.PositionOf(at.id) + 1, std::move(op));
}

void Change(Program& program, OpAt at, const std::function<void(Op&)>& change) {
  Op op = OpOf(program, at);
  change(op);
  program.MutableBlock(at.block).Replace(at.id, std::move(op));
}

void MoveBefore(Program& program, OpAt at, OpAt before) {
  Op op = OpOf(program, at);
  Block& block = program.MutableBlock(at.block);
  block.Remove(at.id);
  block.Insert(block.PositionOf(before.id), std::move(op));
}

void ChangeVar(Program& program, const std::string& name, const std::function<void(Var&)>& change) {
  Var var = *program.main().FindVar(name);
  change(var);
  var.wire_bytes.clear();
  program.MutableBlock(0).SetVar(std::move(var));
}

}  // namespace penstock::test
