#include "framework/ir/edit.h"

#include <algorithm>

#include "framework/base/check.h"

namespace penstock {
namespace {

// Returns the op with its arguments renamed; the op itself if it has none of these names.
OpRef Renamed(const OpRef& op, const ViewMap<const std::string*>& names) {
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

std::size_t BlockEdit::ChangesAt(OpId id) const {
  const std::size_t ops = before_.ops().size();
  const auto behind = static_cast<std::uint64_t>(id) - static_cast<std::uint64_t>(first_inserted_);
  if (behind < inserted_count_) return ops + behind;
  const int position = before_.PositionOf(id);
  return position < 0 ? ops + inserted_count_ : static_cast<std::size_t>(position);
}

BlockEdit::Change& BlockEdit::ChangeOf(OpId id) {
  const std::size_t at = ChangesAt(id);
  if (const Change* known = ChangeAt(at)) return const_cast<Change&>(*known);
  if (at < before_.ops().size() + inserted_count_) {
    if (change_at_.size() <= at) change_at_.resize(std::max(at + 1, before_.ops().size()), -1);
    change_at_[at] = static_cast<std::int32_t>(changes_.size());
  } else {
    all_known_ = false;
  }
  return changes_.emplace_back();
}

const BlockEdit::Change* BlockEdit::ChangeAt(std::size_t at) const {
  if (at >= change_at_.size() || change_at_[at] < 0) return nullptr;
  return &changes_[static_cast<std::size_t>(change_at_[at])];
}

const BlockEdit::Change* BlockEdit::FindChange(OpId id) const { return ChangeAt(ChangesAt(id)); }

const Op* BlockEdit::FindOp(OpId id) const {
  const Change* change = FindChange(id);
  if (change == nullptr) return before_.FindOp(id);
  if (change->removed) return nullptr;
  return change->replacement != nullptr ? change->replacement.get() : before_.FindOp(id);
}

BlockEdit::Inserted BlockEdit::Insert(Op op) {
  const OpId id = after_.NewId();
  if (inserted_count_++ == 0) first_inserted_ = id;
  return {id, std::make_shared<const Op>(std::move(op))};
}

OpId BlockEdit::InsertAfter(OpId at, Op op) {
  return ChangeOf(at).after.emplace_back(Insert(std::move(op))).id;
}

OpId BlockEdit::InsertBefore(OpId at, Op op) {
  return ChangeOf(at).before.emplace_back(Insert(std::move(op))).id;
}

OpId BlockEdit::Append(Op op) { return appended_.emplace_back(Insert(std::move(op))).id; }

void BlockEdit::Replace(OpId id, Op op) {
  ChangeOf(id).replacement = std::make_shared<const Op>(std::move(op));
}
void BlockEdit::Remove(OpId id) { ChangeOf(id).removed = true; }

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

// Ops may be inserted around an inserted op too, so each op is placed with its own lists.
void BlockEdit::Place(const OpEntry& entry, const Change* change, std::vector<OpEntry>& out) const {
  if (change == nullptr) {
    out.push_back(entry);
    return;
  }
  PlaceAll(change->before, out);
  if (!change->removed)
    out.push_back({entry.id, change->replacement != nullptr ? change->replacement : entry.op});
  PlaceAll(change->after, out);
}

void BlockEdit::PlaceAll(const std::vector<Inserted>& inserted, std::vector<OpEntry>& out) const {
  for (const Inserted& one : inserted) Place({one.id, one.op}, FindChange(one.id), out);
}

Block BlockEdit::Apply() && {
  std::vector<OpEntry> ops;
  ops.reserve(before_.ops().size() + inserted_count_);
  for (std::size_t i = 0; i < before_.ops().size(); ++i) Place(before_.ops()[i], ChangeAt(i), ops);
  PlaceAll(appended_, ops);
  after_.RemoveVars(removed_vars_);
  if (!renames_.empty()) {
    ViewMap<const std::string*> names;  // looked up for every argument
    names.reserve(renames_.size());
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
    if (edit->all_known_) continue;
    return InternalError("E-edit-anchor", "an edit of block ", index, " names an op that is not there");
  }
  for (auto& [index, edit] : blocks_) {
    // A block that the edit read but did not change stays the same object, so it need not be verified again.
    const bool looked_at = edit->changes_.empty() && edit->appended_.empty() && edit->renames_.empty() &&
                           edit->removed_vars_.empty() && edit->after_.vars() == edit->before_.vars();
    if (!looked_at) out_.ReplaceBlock(index, std::move(*edit).Apply());
  }
  blocks_.clear();
  return std::move(out_);
}

}  // namespace penstock
