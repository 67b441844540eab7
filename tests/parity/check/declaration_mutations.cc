#include <algorithm>
#include <map>

#include "tests/parity/check/mutations.h"

namespace penstock::test {
namespace {

using Edit = std::pair<std::string, std::function<void(Var&)>>;

// Another plausible element type.
DType OtherType(DType type) {
  switch (type) {
    case DType::kFp32:
      return DType::kFp64;
    case DType::kInt64:
      return DType::kInt32;
    default:
      return DType::kFp32;
  }
}

std::vector<Edit> EditsOf(const Var& var) {
  std::vector<Edit> edits;
  edits.emplace_back("persistable turned", [](Var& v) { v.persistable = !v.persistable; });
  if (var.kind == VarKind::kTensor || var.kind == VarKind::kSelectedRows) {
    edits.emplace_back("another kind", [](Var& v) {
      v.kind = v.kind == VarKind::kTensor ? VarKind::kSelectedRows : VarKind::kTensor;
    });
  }
  if (!var.type) return edits;
  edits.emplace_back("another element type", [](Var& v) { v.type->dtype = OtherType(v.type->dtype); });
  edits.emplace_back("one level more", [](Var& v) { ++v.type->lod_level; });
  for (int axis = 0; axis < var.shape().rank(); ++axis) {
    const Dim extent = var.shape()[axis];
    if (extent == kUnknownDim) continue;
    edits.emplace_back(axis == 0 ? "one row more" : "one column more",
                       [axis](Var& v) { v.type->shape.Set(axis, v.type->shape[axis] + 1); });
  }
  if (var.shape().rank() > 0) {
    edits.emplace_back("one extent more", [](Var& v) { v.type->shape.Append(1); });
  }
  return edits;
}

// A key for similar variables: the ops and slots that read and write them.
std::map<std::string, std::string> Uses(const Program& program) {
  std::map<std::string, std::set<std::string>> uses;
  for (int b = 0; b < program.block_count(); ++b) {
    for (const OpEntry& entry : program.block(b).ops()) {
      for (const Slot& slot : entry.op->inputs()) {
        for (const std::string& name : slot.args)
          uses[name].insert(StrCat("in of ", entry.op->type(), ".", slot.name));
      }
      for (const Slot& slot : entry.op->outputs()) {
        for (const std::string& name : slot.args)
          uses[name].insert(StrCat("out of ", entry.op->type(), ".", slot.name));
      }
    }
  }
  std::map<std::string, std::string> out;
  for (const auto& [name, all] : uses) out[name] = Join(all, ", ");
  return out;
}

}  // namespace

std::vector<Mutation> DeclarationMutations(const Program& program, int per_kind) {
  std::vector<Mutation> out;
  std::map<std::string, int> of_kind;
  const auto add = [&](std::string what, std::function<void(Program&)> make) {
    const int number = of_kind[what]++;
    if (number < per_kind) out.push_back({std::move(what), number, std::move(make)});
  };
  auto uses = Uses(program);
  for (int b = 0; b < program.block_count(); ++b) {
    for (const VarRef& var : program.block(b).vars()) {
      const std::string use = uses.contains(var->name) ? uses[var->name] : "in no op";
      const std::string who = StrCat(var->persistable ? "persistable " : "variable ", "(", use, ")");
      for (auto& [how, edit] : EditsOf(*var)) {
        add(StrCat(who, ": ", how), [b, name = var->name, edit = edit](Program& edited) {
          Var changed = *edited.block(b).FindVar(name);
          edit(changed);
          changed.wire_bytes.clear();
          edited.MutableBlock(b).SetVar(std::move(changed));
        });
      }
      add(StrCat(who, ": removed"),
          [b, name = var->name](Program& edited) { edited.MutableBlock(b).RemoveVar(name); });
    }
    for (const int parent : {program.block(b).parent() - 1, program.block(b).parent() + 1}) {
      if (b == 0 || parent < 0 || parent >= program.block_count() || parent == b) continue;
      add(StrCat("block: parent ", parent < program.block(b).parent() ? "one before" : "one behind"),
          [b, parent](Program& edited) { edited.MutableBlock(b).set_parent(parent); });
    }
  }
  return out;
}

}  // namespace penstock::test
