#include "transpiler/pipeline/verify_touched.h"

#include <algorithm>
#include <string_view>
#include <variant>
#include <vector>

#include "framework/base/view_map.h"

namespace penstock {
namespace {

Status VerifyBlockRefs(const Op& op, const Program& after) {
  if (!op.may_name_blocks()) return OkStatus();
  for (const NamedAttr& attr : op.attrs()) {
    std::vector<BlockRef> refs;
    if (const auto* one = std::get_if<BlockRef>(&attr.value)) refs = {*one};
    if (const auto* many = std::get_if<std::vector<BlockRef>>(&attr.value)) refs = *many;
    for (const BlockRef ref : refs) {
      if (ref.index > 0 && ref.index < after.block_count()) continue;
      return InternalError("E-verify-block", op.type(), " enters block ", ref.index, "; there are ",
                           after.block_count());
    }
  }
  return OkStatus();
}

// Finds the ops of a block by id. Requests come nearly in the block's order, because a pass that inserts and
// removes ops keeps the order of the others, so a parallel walk finds nearly all without an index.
class EarlierOps {
 public:
  explicit EarlierOps(const Block* block) : block_(block) {
    if (block == nullptr) return;
    for (const OpEntry& entry : block->ops()) last_ = std::max(last_, entry.id);
  }

  // Null if the block has no such op.
  const Op* Find(OpId id) {
    if (block_ == nullptr || id > last_) return nullptr;  // ids only grow
    for (std::size_t i = next_; i < block_->ops().size(); ++i) {
      if (block_->ops()[i].id != id) continue;
      next_ = i + 1;
      return block_->ops()[i].op.get();
    }
    return block_->FindOp(id);  // the pass moved it forward
  }

 private:
  const Block* block_;
  OpId last_ = OpId::kNone;
  std::size_t next_ = 0;
};

class BlockVerifier {
 public:
  BlockVerifier(const Program& before, const Program& after, int index, const OpRegistry& ops)
      : before_(index < before.block_count() ? &before.block(index) : nullptr),
        after_(after),
        index_(index),
        ops_(ops) {}

  Status Verify() {
    NoteLostDeclarations();
    EarlierOps earlier(before_);
    for (const OpEntry& entry : after_.block(index_).ops()) {
      const bool touched = earlier.Find(entry.id) != entry.op.get();
      if (touched || !lost_.empty()) {
        NoteNames(entry.op->inputs(), *entry.op, touched);
        NoteNames(entry.op->outputs(), *entry.op, touched);
        if (names_.size() >= kTogether) PENSTOCK_RETURN_IF_ERROR(VerifyNames());
      }
      if (!touched) continue;
      PENSTOCK_RETURN_IF_ERROR(VerifyBlockRefs(*entry.op, after_));
      if (const OpDef* def = ops_.Find(entry.op->type())) PENSTOCK_RETURN_IF_ERROR(def->CheckOp(*entry.op));
    }
    return VerifyNames();
  }

 private:
  // The variables that the pass removed from this block.
  void NoteLostDeclarations() {
    if (before_ == nullptr) return;
    const Block& block = after_.block(index_);
    // Most passes only add, so the old declarations are still at the head of the list.
    if (before_->vars().size() <= block.vars().size() &&
        std::equal(before_->vars().begin(), before_->vars().end(), block.vars().begin())) {
      return;
    }
    // A pass that removes or replaces declarations keeps the order of the others.
    const std::vector<VarRef>& was = before_->vars();
    const std::vector<VarRef>& is = block.vars();
    std::vector<std::string_view> moved;
    std::size_t at = 0;
    for (std::size_t i = 0; i < was.size(); ++i) {
      const bool stays = at < is.size() && was[i] == is[at];
      if (!stays) moved.push_back(was[i]->name);
      const bool taken_away = !stays && at < is.size() && i + 1 < was.size() && was[i + 1] == is[at];
      if (!taken_away) ++at;
    }
    std::vector<std::int64_t> positions(moved.size());
    block.VarPositions(moved, positions);
    for (std::size_t i = 0; i < moved.size(); ++i) {
      if (positions[i] < 0) lost_.insert(moved[i]);
    }
  }

  void NoteNames(const std::vector<Slot>& slots, const Op& op, bool touched) {
    for (const Slot& slot : slots) {
      for (const std::string& name : slot.args) {
        // Ignores variables that the user's program never declared: the pass did not cause it.
        if (!touched && !lost_.contains(name)) continue;
        if (name == kEmptyVarName) continue;
        names_.push_back(name);
        named_by_.push_back(&op);
      }
    }
  }

  static constexpr std::size_t kTogether = 256;  // names per batch of look-ups

  // Looks up the collected names and clears them.
  Status VerifyNames() {
    std::vector<const Var*> found(names_.size());
    after_.FindVars(index_, names_, found);
    const auto missing = std::find(found.begin(), found.end(), nullptr);
    if (missing == found.end()) {
      names_.clear();
      named_by_.clear();
      return OkStatus();
    }
    const auto at = static_cast<std::size_t>(missing - found.begin());
    return InternalError("E-pass-undeclared", named_by_[at]->type(), " in block ", index_, " names ",
                         names_[at], ", which is not declared");
  }

  const Block* before_;  // null: a new block
  const Program& after_;
  int index_;
  const OpRegistry& ops_;
  ViewSet lost_;
  std::vector<std::string_view> names_;  // names that must be declared
  std::vector<const Op*> named_by_;      // the op that uses each
};

}  // namespace

Status VerifyTouched(const Program& before, const Program& after, const OpRegistry& ops) {
  if (before.content_id() == after.content_id()) return OkStatus();
  for (int i = 0; i < after.block_count(); ++i) {
    if (i < before.block_count() && &before.block(i) == &after.block(i)) continue;
    PENSTOCK_RETURN_IF_ERROR(BlockVerifier(before, after, i, ops).Verify());
  }
  return OkStatus();
}

}  // namespace penstock
