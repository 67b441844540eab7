#include "framework/op/kernel.h"

#include "framework/op/op_def.h"

namespace penstock {
namespace {

const Argument kAbsent{};

std::span<const Argument> Find(const std::vector<KernelSetup::Arguments>& slots, std::string_view slot) {
  for (const KernelSetup::Arguments& arguments : slots) {
    if (arguments.slot == slot) return arguments.list;
  }
  return {};
}

}  // namespace

std::span<const Argument> KernelSetup::Inputs(std::string_view slot) const { return Find(inputs_, slot); }
std::span<const Argument> KernelSetup::Outputs(std::string_view slot) const { return Find(outputs_, slot); }

const Argument& KernelSetup::Input(std::string_view slot) const {
  const auto arguments = Inputs(slot);
  return arguments.empty() ? kAbsent : arguments.front();
}

const Argument& KernelSetup::Output(std::string_view slot) const {
  const auto arguments = Outputs(slot);
  return arguments.empty() ? kAbsent : arguments.front();
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
