#include "executor/plan/replace_steps.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "executor/graph/infer.h"
#include "executor/plan/lives.h"

namespace penstock::exec {
namespace {

void PutArgument(const std::vector<Slot>& slots, const NewArgument& a, std::vector<std::vector<int>>& rows) {
  rows.resize(slots.size());
  const auto slot = std::ranges::find(slots, std::string_view(a.slot),
                                      [](const Slot& s) { return std::string_view(s.name.str()); });
  rows[static_cast<std::size_t>(slot - slots.begin())] = {a.variable};
}

}  // namespace

std::vector<TensorDesc> WrittenTypes(const CompiledBlock& block, std::span<const TensorDesc> known) {
  std::vector<TensorDesc> types(known.begin(), known.end());
  for (const Instruction& instruction : block.instructions) {
    const Result<InferContext> inferred = InferenceOf(block, instruction, types);
    for (std::size_t i = 0; i < instruction.outputs.size(); ++i) {
      for (std::size_t j = 0; j < instruction.outputs[i].size(); ++j) {
        const int slot = instruction.outputs[i][j];
        if (slot < 0) continue;
        const auto s = static_cast<std::size_t>(slot);
        types[s] = inferred.ok() ? inferred->outputs()[i][j] : DescOf(*block.slots[s].var);
      }
    }
  }
  return types;
}

Instruction RenamedAs(const OpRegistry& ops, const Instruction& from, const char* type) {
  const auto texts = [](const Slot& slot) {
    return std::vector<std::string>(slot.args.begin(), slot.args.end());
  };
  Op op(type);
  for (const Slot& slot : from.op->inputs()) op.AddInput(slot.name.str(), texts(slot));
  for (const Slot& slot : from.op->outputs()) op.AddOutput(slot.name.str(), texts(slot));
  for (const NamedAttr& attr : from.op->attrs()) op.Set(attr.name, attr.value);
  op.SetLocation(from.op->location());
  Instruction made = from;
  made.op = std::make_shared<const Op>(std::move(op));
  made.def = ops.Find(type);
  return made;
}

Instruction WithArguments(const CompiledBlock& block, const Instruction& from,
                          const std::vector<NewArgument>& inputs, const std::vector<NewArgument>& outputs) {
  Op op = *from.op;
  Instruction made = from;
  const auto name = [&](int slot) { return block.slots[static_cast<std::size_t>(slot)].name; };
  for (const NewArgument& a : inputs) {
    op.AddInput(a.slot, {name(a.variable)});
    PutArgument(op.inputs(), a, made.inputs);
  }
  for (const NewArgument& a : outputs) {
    op.AddOutput(a.slot, {name(a.variable)});
    PutArgument(op.outputs(), a, made.outputs);
  }
  made.op = std::make_shared<const Op>(std::move(op));
  return made;
}

Instruction WithInput(const CompiledBlock& block, const Instruction& from, int of, int to) {
  Op op = *from.op;
  const auto name = [&](int slot) -> const std::string& {
    return block.slots[static_cast<std::size_t>(slot)].name;
  };
  op.Rename(name(of), name(to), false);
  Instruction made = from;
  for (std::vector<int>& row : made.inputs) std::ranges::replace(row, of, to);
  made.op = std::make_shared<const Op>(std::move(op));
  return made;
}

void BlockWithFewerSteps::Replace(const std::vector<int>& members, int at, Instruction made) {
  const auto measure = [&](int slot) { measured_[static_cast<std::size_t>(slot)] = true; };
  for (const int member : members) {
    replaced_[static_cast<std::size_t>(member)].at = at;
    uses_.EachArgument(member, measure);
  }
  BlockUses::EachOf(made, measure);
  replaced_[static_cast<std::size_t>(at)].made = std::move(made);
}

std::shared_ptr<const CompiledBlock> BlockWithFewerSteps::Write() {
  auto out = std::make_shared<CompiledBlock>(block_);
  out->instructions.clear();
  std::vector<int> stands_at(replaced_.size(), -1);
  for (std::size_t i = 0; i < replaced_.size(); ++i) {
    Replacement& one = replaced_[i];
    if (one.at >= 0 && !one.made) continue;
    stands_at[i] = static_cast<int>(out->instructions.size());
    out->instructions.push_back(one.made ? std::move(*one.made) : block_.instructions[i]);
  }
  for (std::size_t i = 0; i < replaced_.size(); ++i) {
    if (stands_at[i] < 0) stands_at[i] = stands_at[static_cast<std::size_t>(replaced_[i].at)];
  }
  MoveLives(*out, stands_at, measured_);
  return out;
}

}  // namespace penstock::exec
