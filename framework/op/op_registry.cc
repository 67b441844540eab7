#include "framework/op/op_registry.h"

#include <algorithm>

#include "framework/base/near_names.h"
#include "framework/ir/program.h"
#include "framework/op/conform.h"
#include "framework/op/tensor_desc.h"

namespace penstock {
namespace {

// Writes the inferred type into the variable's declaration; declares the variable in `block` if no block
// does.
void Declare(Program& program, int block, const std::string& name, const TensorDesc& info) {
  if (name == kEmptyVarName) return;
  const Var* old = program.FindVar(block, name);
  if (old != nullptr && old->type.has_value() && old->kind == info.kind && old->type->dtype == info.dtype &&
      old->type->shape == info.shape && old->type->lod_level == info.lod_level) {
    return;
  }
  if (!info.has_type && old != nullptr) return;
  const int owner = program.BlockOfVar(block, name);
  Var var = old != nullptr ? *old : Var();
  var.name = name;
  var.kind = info.kind;
  var.wire_bytes.clear();
  if (info.has_type)
    var.type = TensorType{info.dtype, info.shape, info.lod_level, info.kind != VarKind::kSelectedRows};
  program.MutableBlock(owner < 0 ? block : owner).SetVar(std::move(var));
}

// Whether a program may declare an element type that no kernel accepts, as Fluid allows: float16, in programs
// for GPUs, and variables of layers.data, whose element type the feed determines. The executor checks the
// actual element types.
bool HasLooseDType(const Var& var, const TensorDesc& info) {
  return info.dtype == DType::kFp16 || (var.facts.is_data && !var.need_check_feed);
}

}  // namespace

OpDef& OpRegistry::Add(std::string type) {
  PENSTOCK_CHECK(!defs_.contains(type), StrCat(type, " is registered twice"));
  auto def = std::make_unique<OpDef>(type);
  OpDef& out = *def;
  by_type_.emplace(type, def.get());
  defs_.emplace(std::move(type), std::move(def));
  return out;
}

const OpDef* OpRegistry::Find(std::string_view type) const {
  const auto it = by_type_.find(type);
  return it == by_type_.end() ? nullptr : it->second;
}

Result<const OpDef*> OpRegistry::Require(const Op& op) const {
  if (const OpDef* def = Find(op.type())) return def;
  Status status = InvalidArgument("E-op-unknown", "op type ", op.type(), " is not known");
  std::vector<std::string_view> known;
  for (const auto& [type, def] : by_type_) known.push_back(type);
  const std::vector<std::string_view> near = NearNames(op.type(), known);
  if (!near.empty()) status.With(StrCat("note: known types with a similar name: ", Join(near, ", ")));
  return status;
}

std::vector<const OpDef*> OpRegistry::All() const {
  std::vector<const OpDef*> all;
  for (const auto& [type, def] : by_type_) all.push_back(def);
  return all;
}

Status OpRegistry::Finish() {
  for (const auto& [type, def] : defs_) {
    def->BuildGradDef();
    def->PassLayoutsToGrad();
    if (def->grad_def_ == nullptr) continue;
    if (!def->grad_) return InternalError("E-registry-grad", type, ": a gradient kernel without a gradient");
    const std::shared_ptr<OpDef>& grad = def->grad_def_;
    // If several forward ops share one gradient op, the first declaration is used.
    if (by_type_.emplace(grad->type(), grad.get()).second) grads_.push_back(grad);
  }
  for (const auto& [type, def] : defs_) def->NoteUpdates();
  for (const auto& [type, def] : by_type_) {
    if (def->has_kernel(DeviceKind::kCpu) && !def->has_infer_shape()) {
      return InternalError("E-registry-infer", type, ": a kernel without shape inference");
    }
    if (!def->not_built().empty() && def->has_kernel(DeviceKind::kCpu)) {
      return InternalError("E-registry-kernel", type, ": a kernel of an op that is not built");
    }
    if (const std::optional<RowParts>& rows = def->row_parts_) {
      const bool cuts = def->FindInput(rows->whole) != nullptr && def->FindOutput(rows->parts) != nullptr;
      const bool joins = def->FindOutput(rows->whole) != nullptr && def->FindInput(rows->parts) != nullptr;
      if (!cuts && !joins) {
        return InternalError("E-registry-rows", type, ": of ", rows->whole, " and ", rows->parts,
                             " one must be an input, the other an output");
      }
    }
    if (!def->optimizer_) continue;
    if (def->FindInput(def->optimizer_->param_slot) == nullptr ||
        def->FindInput(def->optimizer_->grad_slot) == nullptr) {
      return InternalError("E-registry-optimizer", type, ": its parameter or gradient slot is no input");
    }
    for (const StateDef& state : def->optimizer_->states) {
      const bool written = state.output == "-" || def->FindOutput(state.output) != nullptr;
      if (def->FindInput(state.slot) != nullptr && written) continue;
      return InternalError("E-registry-optimizer", type, ": state ", state.slot,
                           " needs an input of that name and an ", "output ", state.output);
    }
  }
  return OkStatus();
}

Status InferAndDeclare(const OpRegistry& ops, Program& program, int block, const Op& op) {
  PENSTOCK_ASSIGN_OR_RETURN(const OpDef* def, ops.Require(op));
  PENSTOCK_RETURN_IF_ERROR(def->CheckOp(op));
  const std::optional<Op> conformed = Conformed(*def, op);
  InferContext context(*def, conformed ? *conformed : op,
                       [&](const std::string& name) -> std::optional<TensorDesc> {
                         const Var* var = program.FindVar(block, name);
                         if (var == nullptr) return std::nullopt;
                         TensorDesc info = DescOf(*var);
                         info.dtype_is_loose = HasLooseDType(*var, info);
                         return info;
                       });
  PENSTOCK_RETURN_IF_ERROR(def->Infer(context));
  for (std::size_t s = 0; s < op.outputs().size(); ++s) {
    for (std::size_t i = 0; i < op.outputs()[s].args.size(); ++i) {
      Declare(program, block, op.outputs()[s].args[i], context.outputs()[s][i]);
    }
  }
  return OkStatus();
}

}  // namespace penstock
