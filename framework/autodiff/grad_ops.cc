#include "framework/autodiff/grad_ops.h"

#include <algorithm>
#include <span>

#include "framework/ir/mentions.h"
#include "framework/op/conform.h"

namespace penstock {
namespace {

const std::string kNone;

bool NeedsGradient(const std::string& var, const NameSet& no_grad) {
  return var != kEmptyVarName && !no_grad.contains(GradName(var));
}

std::vector<std::string> SlotsWithGradient(const OpDef& def, const GradSpec& spec) {
  if (!spec.of.empty()) return spec.of;
  std::vector<std::string> slots;
  for (const SlotDef& slot : def.outputs()) {
    if (!slot.intermediate) slots.push_back(slot.name);
  }
  return slots;
}

std::vector<std::string> GradArgs(std::span<const std::string> vars, bool keep_places, const NameSet& no_grad,
                                  GradNames& names) {
  std::vector<std::string> args;
  for (const std::string& var : vars) {
    if (NeedsGradient(var, no_grad)) {
      args.push_back(GradName(var));
      names.Add(args.back(), var);
    } else if (keep_places) {
      args.emplace_back(kEmptyVarName);
    }
  }
  return args;
}

Op FromSpec(const OpDef& def, const GradSpec& spec, const Op& op, const NameSet& no_grad, GradNames& names) {
  Op grad(spec.type.empty() ? op.type() + "_grad" : spec.type);
  for (const std::string& slot : spec.reads) grad.AddInput(slot, op.Input(slot));
  for (const std::string& slot : spec.reads_outputs) grad.AddInput(slot, op.Output(slot));
  for (const std::string& slot : SlotsWithGradient(def, spec)) {
    std::vector<std::string> args;
    for (const std::string& var : op.Output(slot)) {
      args.push_back(GradName(var));
      names.Add(args.back(), var);
    }
    grad.AddInput(GradName(slot), std::move(args));
  }
  for (const std::string& slot : spec.yields) {
    const SlotDef* declared = def.FindInput(slot);
    const bool keep_places = declared != nullptr && declared->repeated;
    grad.AddOutput(GradName(slot), GradArgs(op.Input(slot), keep_places, no_grad, names));
  }
  if (spec.copies_attrs) {
    for (const NamedAttr& attr : op.attrs()) grad.Set(attr.name, attr.value);
  }
  return grad;
}

Result<std::vector<Op>> FromMaker(const OpDef& def, const Op& op, const NameSet& no_grad, GradNames& names,
                                  const GradSite& site) {
  const auto grad_of = [&](const std::string& var) -> std::string {
    const bool only_output = Writes(op, var) && !Reads(op, var);
    if (!only_output && !NeedsGradient(var, no_grad)) return "";
    names.Add(GradName(var), var);
    return GradName(var);
  };
  return def.grad_maker()({op, grad_of, site.program, site.block, site.grad_block});
}

}  // namespace

std::string GradName(std::string_view var) { return StrCat(var, kGradSuffix); }

void GradNames::AddPart(const std::string& part, const std::string& grad) { part_of_[part] = grad; }

void GradNames::Rename(const std::string& from, const std::string& to) {
  const auto it = forward_of_.find(from);
  if (it == forward_of_.end()) return;
  forward_of_[to] = it->second;
  forward_of_.erase(from);
}

const std::string& GradNames::ForwardOfWhole(std::string_view name) const {
  const auto it = forward_of_.find(name);
  return it == forward_of_.end() ? kNone : it->second;
}

const std::string& GradNames::ForwardOf(std::string_view name) const {
  const auto part = part_of_.find(name);
  return ForwardOfWhole(part == part_of_.end() ? name : part->second);
}

Result<std::vector<Op>> MakeGradOps(const OpRegistry& ops, const Op& op, const NameSet& no_grad,
                                    GradNames& names, const GradSite& site) {
  PENSTOCK_ASSIGN_OR_RETURN(const OpDef* def, ops.Require(op));
  if (def->no_grad()) return std::vector<Op>();
  PENSTOCK_RETURN_IF_ERROR(CheckAttrKinds(*def, op));
  if (const std::optional<Op> conformed = Conformed(*def, op))
    return MakeGradOps(ops, *conformed, no_grad, names, site);
  if (!def->has_grad()) {
    const std::vector<std::string> inputs = op.InputNames();
    const auto needy = std::find_if(inputs.begin(), inputs.end(),
                                    [&](const std::string& var) { return NeedsGradient(var, no_grad); });
    if (needy == inputs.end()) return std::vector<Op>();
    return InvalidArgument("E-backward-no-grad", op.type(), " has no gradient, and its input ", *needy,
                           " needs one")
        .With(StrCat("note: mark ", *needy, " as stop_gradient if nothing before it is to be trained"));
  }
  std::vector<Op> grads;
  if (def->grad_maker() != nullptr) {
    PENSTOCK_ASSIGN_OR_RETURN(grads, FromMaker(*def, op, no_grad, names, site));
  } else {
    grads.push_back(FromSpec(*def, *def->grad(), op, no_grad, names));
  }
  const std::string device = op.GetOr<std::string>(kDeviceAttr, "");
  for (Op& grad : grads) grad.Set(kDeviceAttr, device).SetLocation(op.location());
  return grads;
}

}  // namespace penstock
