#include "framework/op/operand_kinds.h"

#include <algorithm>

namespace penstock {

Status KindError(const OpDef& def, const SlotDef& slot, const std::string& name, VarKind kind) {
  return InvalidArgument("E-op-kind", def.type(), ": ", slot.name, " (", name, ") is ", KindText(kind),
                         "; it must be ", slot.kinds.ToString());
}

Status RequireKinds(const OpDef& def, const KernelSetup& k) {
  for (const SlotDef& slot : def.inputs()) {
    for (const Argument& argument : k.Inputs(slot.name)) {
      if (argument && !slot.kinds.Has(argument.kind))
        return KindError(def, slot, std::string(argument.name), argument.kind);
    }
  }
  return OkStatus();
}

bool StartsBlocks(const OpDef& def, const Op& op) {
  return std::ranges::any_of(def.attrs(), [&](const AttrDef& attr) {
    const auto* many = op.Get<std::vector<BlockRef>>(attr.name);
    return op.Get<BlockRef>(attr.name) != nullptr || (many != nullptr && !many->empty());
  });
}

Status RequireVariables(const OpDef& def, const KernelSetup& k) {
  const auto check = [&](const SlotDef& slot, std::span<const Argument> arguments, const char* direction) {
    for (const Argument& argument : arguments) {
      if (!argument) {
        return InvalidArgument("E-op-slot", def.type(), ": ", direction, " ", slot.name,
                               " names no variable (", kEmptyVarName, ")");
      }
    }
    return OkStatus();
  };
  const bool looks_itself = def.effects().AreOutside() || StartsBlocks(def, k.op());
  for (const SlotDef& slot : def.inputs()) {
    const bool some = slot.repeated && (def.reads_only_some() || (slot.optional && looks_itself));
    if (some || (slot.optional && !slot.repeated)) continue;
    PENSTOCK_RETURN_IF_ERROR(check(slot, k.Inputs(slot.name), "input"));
  }
  for (const SlotDef& slot : def.outputs()) {
    if (slot.optional || slot.intermediate) continue;
    PENSTOCK_RETURN_IF_ERROR(check(slot, k.Outputs(slot.name), "output"));
  }
  return OkStatus();
}

namespace {

// Why the output may not be the variable of this input; empty if it may.
std::string WhyApart(const SlotDef& output, const Argument& out, const SlotDef& input) {
  const std::string another = StrCat(" must be another variable than ", input.name, " (", out.name, ")");
  if (output.aliasing == Aliasing::kNever) return StrCat(output.name, another);
  // A kernel computes the gradients of several inputs one after the other, so none may overwrite a forward
  // value.
  const auto is_gradient = [](const SlotDef& slot) { return slot.name.ends_with(kGradSuffix); };
  if (is_gradient(output) && !is_gradient(input)) return StrCat(output.name, another);
  if (!output.updates.empty() && output.updates != input.name)
    return StrCat(output.name, " is the new value of ", output.updates, "; it", another);
  const bool sized = out.kind != VarKind::kTensor || out.shape.IsKnown();
  if (sized || output.aliasing == Aliasing::kAnySize) return {};
  return StrCat(output.name, " gets its size while the op runs; it", another);
}

// Two outputs may be one variable, which then holds the value written last. This is not allowed if an
// output's size is found while the op runs: resizing one may free the memory to which the kernel writes the
// other.
Status RequireOneSize(const OpDef& def, const KernelSetup& k) {
  const auto sized = [](const Argument& out) { return out.kind != VarKind::kTensor || out.shape.IsKnown(); };
  for (std::size_t i = 0; i < def.outputs().size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      for (const Argument& one : k.Outputs(def.outputs()[i].name)) {
        for (const Argument& other : k.Outputs(def.outputs()[j].name)) {
          if (!one || one.operand.index != other.operand.index || (sized(one) && sized(other))) continue;
          return InvalidArgument("E-op-alias", def.type(), ": ", def.outputs()[i].name, " and ",
                                 def.outputs()[j].name, " are one variable (", one.name,
                                 "), and the op finds their sizes while it runs");
        }
      }
    }
  }
  return OkStatus();
}

}  // namespace

Status RequireAliasing(const OpDef& def, const KernelSetup& k) {
  PENSTOCK_RETURN_IF_ERROR(RequireOneSize(def, k));
  for (const SlotDef& output : def.outputs()) {
    for (const Argument& out : k.Outputs(output.name)) {
      for (const SlotDef& input : def.inputs()) {
        for (const Argument& in : k.Inputs(input.name)) {
          if (!out || in.operand.index != out.operand.index) continue;
          const std::string why = WhyApart(output, out, input);
          if (!why.empty()) return InvalidArgument("E-op-alias", def.type(), ": ", why);
        }
      }
    }
  }
  return OkStatus();
}

}  // namespace penstock
