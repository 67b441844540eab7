#include "framework/autodiff/regularize.h"

namespace penstock {
namespace {

const Regularizer* RegularizerOf(const OptimizerSpec& spec, const std::string& param) {
  const auto own = spec.param_regularizers.find(param);
  if (own != spec.param_regularizers.end()) return &own->second;
  return spec.regularizer ? &*spec.regularizer : nullptr;
}

// Makes a temporary of the parameter's shape.
std::string NewTemporary(OpWriter& out, UniqueNames& names, const Var& param) {
  std::string name = names.Generate("_generated_var");
  out.program().MutableBlock(0).SetVar(
      TensorVar(name, param.type->dtype, param.type->shape, param.type->lod_level));
  return name;
}

// Adds the ops that compute the penalty's gradient, and returns its variable.
Result<std::string> AddPenalty(OpWriter& out, UniqueNames& names, const Var& param,
                               const Regularizer& regularizer) {
  std::string decay = NewTemporary(out, names, param);
  std::string scaled = param.name;
  if (regularizer.kind == Regularizer::Kind::kL1) {
    PENSTOCK_RETURN_IF_ERROR(out.Append(Op("sign").AddInput("X", {param.name}).AddOutput("Out", {decay})));
    scaled = decay;
  }
  Op scale("scale");
  scale.AddInput("X", {scaled}).AddOutput("Out", {decay}).Set("scale", regularizer.coefficient);
  PENSTOCK_RETURN_IF_ERROR(out.Append(std::move(scale)));
  return decay;
}

}  // namespace

Status AddRegularization(OpWriter& out, UniqueNames& names, NameScopes& scopes, const OptimizerSpec& spec,
                         std::vector<ParamGrad>& params_grads) {
  const NameScopes::Guard guard(scopes, "regularization");
  for (auto& [param, grad] : params_grads) {
    const Regularizer* regularizer = RegularizerOf(spec, param);
    if (regularizer == nullptr) continue;
    out.SetRole(OpRole::kOptimize, {param, grad});
    const Var param_var = *out.program().FindVar(0, param);
    PENSTOCK_ASSIGN_OR_RETURN(const std::string decay, AddPenalty(out, names, param_var, *regularizer));
    std::string sum = grad;
    if (out.program().FindVar(0, grad)->kind == VarKind::kSelectedRows) {
      sum = StrCat(grad, "@NEWGRAD@");  // Fluid's own spelling
      out.program().MutableBlock(0).SetVar(
          TensorVar(sum, param_var.type->dtype, param_var.type->shape, param_var.type->lod_level));
    }
    PENSTOCK_RETURN_IF_ERROR(out.Append(Op("sum").AddInput("X", {grad, decay}).AddOutput("Out", {sum})));
    grad = sum;
  }
  return OkStatus();
}

}  // namespace penstock
