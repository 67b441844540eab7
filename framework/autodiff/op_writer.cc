#include "framework/autodiff/op_writer.h"

#include "framework/text/describe.h"

namespace penstock {

Result<Op> OpWriter::Complete(Op op) const {
  PENSTOCK_ASSIGN_OR_RETURN(const OpDef* def, ops_.Require(op));
  // Fluid writes no input slots at all for an op without inputs.
  if (!op.inputs().empty()) {
    for (const SlotDef& slot : def->inputs()) {
      if (!op.HasInputSlot(slot.name)) op.AddInput(slot.name, {});
    }
  }
  def->FillDefaults(op);
  op.SetRole(role_).Set(kRoleVarAttr, role_vars_);
  op.Set(kNameScopeAttr, scopes_.Path()).Set(kDeviceAttr, device_);
  return op;
}

Status OpWriter::Append(Op op) {
  PENSTOCK_ASSIGN_OR_RETURN(Op complete, Complete(std::move(op)));
  const int position = static_cast<int>(program_.main().ops().size());
  PENSTOCK_RETURN_IF_ERROR(
      AtOp(InferAndDeclare(ops_, program_, 0, complete), program_, 0, position, complete));
  program_.MutableBlock(0).Append(std::move(complete));
  return OkStatus();
}

}  // namespace penstock
