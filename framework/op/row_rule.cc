#include "framework/op/row_rule.h"

#include "framework/op/op_def.h"

namespace penstock {

std::shared_ptr<const RowRule> RowRuleOf(const OpDef& def, const Op& op, DType type) {
  const KernelFactory make = def.FindKernel(DeviceKind::kCpu, type);
  if (make == nullptr) return nullptr;
  const std::shared_ptr<RowRule> rule = std::dynamic_pointer_cast<RowRule>(std::shared_ptr<Kernel>(make()));
  if (rule == nullptr || !rule->PrepareRows(KernelSetup(def, op, {}, {}, Services()))) return nullptr;
  return rule;
}

}  // namespace penstock
