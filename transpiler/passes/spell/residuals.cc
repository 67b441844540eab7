#include "transpiler/passes/spell/residuals.h"

#include <string>
#include <utility>
#include <vector>

namespace penstock::passes {

Var ResidualVar(const plan::ParamPlacement& param) {
  Var var = TensorVar(ResidualName(param.param), param.dtype, param.shape);
  var.persistable = true;
  return var;
}

Op KeepingResidual(Op send, const plan::ParamPlacement& param) {
  send.AddInput("Residual", {ResidualName(param.param)})
      .AddOutput("ResidualOut", {ResidualName(param.param)});
  return send;
}

Op MakeEmptyResidual(const plan::ParamPlacement& param) {
  Op op("fill_constant");
  op.AddOutput("Out", {ResidualName(param.param)}).Set("shape", param.shape.dims()).Set("value", 0.0f);
  op.Set("dtype", static_cast<std::int32_t>(param.dtype)).Set("force_cpu", false).Set("str_value", "");
  op.SetRole(OpRole::kForward).Set(kRoleVarAttr, std::vector<std::string>());
  op.Set(kNameScopeAttr, "/").Set(kDeviceAttr, "");
  return op;
}

}  // namespace penstock::passes
