#include "framework/op/kernel.h"

#include "framework/op/op_def.h"

namespace penstock {
namespace {

const Operand kAbsentOperand{};

std::span<const Operand> Find(const std::vector<KernelSetup::Argument>& arguments, std::string_view slot) {
  for (const KernelSetup::Argument& argument : arguments) {
    if (argument.slot == slot) return argument.operands;
  }
  return {};
}

}  // namespace

std::span<const Operand> KernelSetup::Inputs(std::string_view slot) const { return Find(inputs_, slot); }
std::span<const Operand> KernelSetup::Outputs(std::string_view slot) const { return Find(outputs_, slot); }

const Operand& KernelSetup::Input(std::string_view slot) const {
  const auto operands = Inputs(slot);
  return operands.empty() ? kAbsentOperand : operands.front();
}

const Operand& KernelSetup::Output(std::string_view slot) const {
  const auto operands = Outputs(slot);
  return operands.empty() ? kAbsentOperand : operands.front();
}

const penstock::Attr& KernelSetup::AttrValue(std::string_view name) const {
  if (const penstock::Attr* value = op_.FindAttr(name)) return *value;
  const AttrDef* def = def_.FindAttr(name);
  PENSTOCK_CHECK(def != nullptr && def->default_value.has_value(),
                 StrCat(op_.type(), ": the schema has no attribute ", name, " with a default"));
  return *def->default_value;
}

WorkspaceId KernelSetup::Workspace(std::size_t bytes) {
  workspaces_.push_back(bytes);
  return {static_cast<int>(workspaces_.size()) - 1};
}

}  // namespace penstock
