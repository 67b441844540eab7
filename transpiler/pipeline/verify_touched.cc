#include "transpiler/pipeline/verify_touched.h"

#include <variant>

namespace penstock {
namespace {

Status VerifyBlockRefs(const Op& op, const Program& after) {
  for (const NamedAttr& attr : op.attrs()) {
    std::vector<BlockRef> refs;
    if (const auto* one = std::get_if<BlockRef>(&attr.value)) refs = {*one};
    if (const auto* many = std::get_if<std::vector<BlockRef>>(&attr.value)) refs = *many;
    for (const BlockRef ref : refs) {
      if (ref.index > 0 && ref.index < after.block_count()) continue;
      return InternalError("E-verify-block", op.type(), " enters block ", ref.index, "; there are ", after.block_count());
    }
  }
  return OkStatus();
}

class BlockVerifier {
 public:
  BlockVerifier(const Program& before, const Program& after, int index, const OpRegistry& ops)
      : before_(before), after_(after), index_(index), ops_(ops) {}

  Status Verify() {
    const bool old = index_ < before_.block_count();
    for (const OpEntry& entry : after_.block(index_).ops()) {
      const bool touched = !old || before_.block(index_).FindOp(entry.id) != entry.op.get();
      PENSTOCK_RETURN_IF_ERROR(VerifyNames(entry.op->InputNames(), *entry.op, touched));
      PENSTOCK_RETURN_IF_ERROR(VerifyNames(entry.op->OutputNames(), *entry.op, touched));
      if (!touched) continue;
      PENSTOCK_RETURN_IF_ERROR(VerifyBlockRefs(*entry.op, after_));
      if (const OpDef* def = ops_.Find(entry.op->type())) PENSTOCK_RETURN_IF_ERROR(def->CheckOp(*entry.op));
    }
    return OkStatus();
  }

 private:
  Status VerifyNames(const std::vector<std::string>& names, const Op& op, bool touched) const {
    for (const std::string& name : names) {
      if (name == kEmptyVarName || after_.FindVar(index_, name) != nullptr) continue;
      // What the user's program never declared is not this pass's doing.
      const bool was_there = index_ < before_.block_count() && before_.FindVar(index_, name) != nullptr;
      if (!touched && !was_there) continue;
      return InternalError("E-verify-undeclared", op.type(), " in block ", index_, " names ", name,
                           ", which is not declared");
    }
    return OkStatus();
  }

  const Program& before_;
  const Program& after_;
  int index_;
  const OpRegistry& ops_;
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
