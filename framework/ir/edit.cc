#include "framework/ir/edit.h"

#include <unordered_map>

#include "framework/base/check.h"

namespace penstock {
namespace {

// The op with its arguments renamed; itself if it has none of them.
OpRef Renamed(const OpRef& op, const std::unordered_map<std::string_view, const std::string*>& names) {
  std::optional<Op> renamed;
  const auto visit = [&](const std::string& name) {
    const auto it = names.find(name);
    if (it == names.end()) return;
    if (!renamed) renamed = *op;
    renamed->Rename(it->first, *it->second, /*attrs=*/true);
  };
  for (const auto* slots : {&op->inputs(), &op->outputs()}) {
    for (const Slot& slot : *slots) {
      for (const std::string& arg : slot.args) visit(arg);
    }
  }
  if (const auto* pairs = op->Get<std::vector<std::string>>(kRoleVarAttr)) {
    for (const std::string& name : *pairs) visit(name);
  }
  return renamed ? std::make_shared<const Op>(*std::move(renamed)) : op;
}

}  // namespace

BlockEdit::BlockEdit(const Block& block) : before_(block), after_(block) {}

const Block& BlockEdit::before() const { return before_; }

const DefUse& BlockEdit::def_use() const {
  if (!def_use_) def_use_.emplace(before_);
  return *def_use_;
}

std::optional<OpId> BlockEdit::LastWriter(std::string_view var) const {
  const std::vector<OpId>& writers = def_use().Writers(var);
  if (writers.empty()) return std::nullopt;
  return writers.back();
}

const Op* BlockEdit::FindOp(OpId id) const {
  if (removed_.contains(id)) return nullptr;
  const auto it = replaced_.find(id);
  return it != replaced_.end() ? it->second.get() : before_.FindOp(id);
}

OpId BlockEdit::NewId() {
  const OpId id = after_.NewId();
  inserted_.insert(id);
  return id;
}

OpId BlockEdit::InsertAfter(OpId at, Op op) {
  const OpId id = NewId();
  after_op_[at].push_back({id, std::make_shared<const Op>(std::move(op))});
  return id;
}

OpId BlockEdit::InsertBefore(OpId at, Op op) {
  const OpId id = NewId();
  before_op_[at].push_back({id, std::make_shared<const Op>(std::move(op))});
  return id;
}

OpId BlockEdit::Append(Op op) {
  const OpId id = NewId();
  appended_.push_back({id, std::make_shared<const Op>(std::move(op))});
  return id;
}

void BlockEdit::Replace(OpId id, Op op) { replaced_[id] = std::make_shared<const Op>(std::move(op)); }
void BlockEdit::Remove(OpId id) { removed_.insert(id); }

void BlockEdit::SetVar(Var var) {
  removed_vars_.erase(var.name);
  after_.SetVar(std::move(var));
}

void BlockEdit::RemoveVar(std::string_view name) { removed_vars_.emplace(name); }

const Var* BlockEdit::FindVar(std::string_view name) const {
  return removed_vars_.contains(name) ? nullptr : after_.FindVar(name);
}

void BlockEdit::RenameVar(std::string from, std::string to) {
  renames_.insert_or_assign(std::move(from), std::move(to));
}

// Insertions may hang on inserted ops, so each op brings its own lists with it.
void BlockEdit::Place(OpId id, const OpRef& op, std::vector<OpEntry>& out) const {
  if (const auto it = before_op_.find(id); it != before_op_.end()) {
    for (const Inserted& inserted : it->second) Place(inserted.id, inserted.op, out);
  }
  if (!removed_.contains(id)) {
    const auto it = replaced_.find(id);
    out.push_back({id, it != replaced_.end() ? it->second : op});
  }
  if (const auto it = after_op_.find(id); it != after_op_.end()) {
    for (const Inserted& inserted : it->second) Place(inserted.id, inserted.op, out);
  }
}

Block BlockEdit::Apply() && {
  std::vector<OpEntry> ops;
  ops.reserve(before_.ops().size() + appended_.size());
  for (const OpEntry& entry : before_.ops()) Place(entry.id, entry.op, ops);
  for (const Inserted& inserted : appended_) Place(inserted.id, inserted.op, ops);
  after_.RemoveVars(removed_vars_);
  if (!renames_.empty()) {
    std::unordered_map<std::string_view, const std::string*> names;  // asked for every argument there is
    for (const auto& [from, to] : renames_) names.emplace(from, &to);
    for (OpEntry& entry : ops) entry.op = Renamed(entry.op, names);
    for (const auto& [from, to] : renames_) after_.RenameDeclaration(from, to);
  }
  after_.SetOps(std::move(ops));
  return std::move(after_);
}

BlockEdit& ProgramEdit::block(int index) {
  std::unique_ptr<BlockEdit>& edit = blocks_[index];
  if (edit == nullptr) edit.reset(new BlockEdit(out_.block(index)));
  return *edit;
}

int ProgramEdit::AddBlock(int parent) { return out_.AddBlock(parent).index(); }

Result<Program> ProgramEdit::Apply() {
  for (const auto& [index, edit] : blocks_) {
    for (const auto* places : {&edit->before_op_, &edit->after_op_}) {
      for (const auto& [at, ops] : *places) {
        if (edit->Known(at)) continue;
        return InternalError("E-edit-anchor", "an edit of block ", index, " names an op that is not there");
      }
    }
    for (const auto& [id, op] : edit->replaced_) {
      if (edit->Known(id)) continue;
      return InternalError("E-edit-anchor", "an edit of block ", index, " replaces an op that is not there");
    }
    for (const OpId id : edit->removed_) {
      if (edit->Known(id)) continue;
      return InternalError("E-edit-anchor", "an edit of block ", index, " removes an op that is not there");
    }
  }
  for (auto& [index, edit] : blocks_) out_.ReplaceBlock(index, std::move(*edit).Apply());
  blocks_.clear();
  return std::move(out_);
}

bool BlockEdit::Known(OpId id) const { return before_.PositionOf(id) >= 0 || inserted_.contains(id); }

}  // namespace penstock
