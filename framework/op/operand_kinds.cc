#include "framework/op/operand_kinds.h"

namespace penstock {

Status KindError(const OpDef& def, const SlotDef& slot, const std::string& name, VarKind kind) {
  return InvalidArgument("E-op-kind", def.type(), ": ", slot.name, " (", name, ") is ", KindText(kind),
                         "; it must be ", slot.kinds.ToString());
}

Status RequireKinds(const OpDef& def, const KernelSetup& k) {
  for (const SlotDef& slot : def.inputs()) {
    for (const Operand& operand : k.Inputs(slot.name)) {
      if (operand && !slot.kinds.Has(operand.kind)) return KindError(def, slot, operand.name, operand.kind);
    }
  }
  return OkStatus();
}

}  // namespace penstock
