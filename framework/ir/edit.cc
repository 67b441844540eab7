#include "framework/ir/edit.h"

#include <algorithm>
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

BlockEdit::BlockEdit(const Block& block) : before_(block), after_(block.WithoutOps()) {}

const Block& BlockEdit::before() const { return before_; }

const DefUse& BlockEdit::def_use() const {
  if (!def_use_) def_use_.emplace(before_);
  return *def_use_;
}

std::optional<OpId> BlockEdit::LastWriter(std::string_view var) const {
  if (last_writers_.empty()) {
    last_writers_.reserve(before_.vars().size());
    for (const OpEntry& entry : before_.ops()) {
      for (const Slot& slot : entry.op->outputs()) {
        for (const std::string& name : slot.args) last_writers_[name] = entry.id;
      }
    }
  }
  const auto it = last_writers_.find(var);
  if (it == last_writers_.end()) return std::nullopt;
  return it->second;
}

const Op* BlockEdit::FindOp(OpId id) const {
  const auto it = changes_.find(id);
  if (it == changes_.end()) return before_.FindOp(id);
  if (it->second.removed) return nullptr;
  return it->second.replacement != nullptr ? it->second.replacement.get() : before_.FindOp(id);
}

BlockEdit::Inserted BlockEdit::Insert(Op op) {
  const OpId id = after_.NewId();
  if (inserted_count_++ == 0) first_inserted_ = id;
  return {id, std::make_shared<const Op>(std::move(op))};
}

OpId BlockEdit::InsertAfter(OpId at, Op op) {
  return changes_[at].after.emplace_back(Insert(std::move(op))).id;
}

OpId BlockEdit::InsertBefore(OpId at, Op op) {
  return changes_[at].before.emplace_back(Insert(std::move(op))).id;
}

OpId BlockEdit::Append(Op op) { return appended_.emplace_back(Insert(std::move(op))).id; }

void BlockEdit::Replace(OpId id, Op op) {
  changes_[id].replacement = std::make_shared<const Op>(std::move(op));
}
void BlockEdit::Remove(OpId id) { changes_[id].removed = true; }

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
  const auto it = changes_.find(id);
  if (it == changes_.end()) {
    out.push_back({id, op});
    return;
  }
  const Change& change = it->second;
  for (const Inserted& inserted : change.before) Place(inserted.id, inserted.op, out);
  if (!change.removed) out.push_back({id, change.replacement != nullptr ? change.replacement : op});
  for (const Inserted& inserted : change.after) Place(inserted.id, inserted.op, out);
}

bool BlockEdit::AllKnown() const {
  return std::all_of(changes_.begin(), changes_.end(), [&](const auto& change) {
    const auto behind =
        static_cast<std::uint64_t>(change.first) - static_cast<std::uint64_t>(first_inserted_);
    return behind < inserted_count_ || before_.PositionOf(change.first) >= 0;
  });
}

Block BlockEdit::Apply() && {
  std::vector<OpEntry> ops;
  ops.reserve(before_.ops().size() + inserted_count_);
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
    if (edit->AllKnown()) continue;
    return InternalError("E-edit-anchor", "an edit of block ", index, " names an op that is not there");
  }
  for (auto& [index, edit] : blocks_) {
    // What an edit looked at and left alone stays the same block, verified already.
    const bool looked_at = edit->changes_.empty() && edit->appended_.empty() && edit->renames_.empty() &&
                           edit->removed_vars_.empty() && edit->after_.vars() == edit->before_.vars();
    if (!looked_at) out_.ReplaceBlock(index, std::move(*edit).Apply());
  }
  blocks_.clear();
  return std::move(out_);
}

}  // namespace penstock
