// Weight decay: adds a penalty's gradient to a parameter's gradient.
//
//   _generated_var_0 = scale(X=w) {scale=0.0005}
//   w@GRAD = sum(X=[w@GRAD, _generated_var_0])
#pragma once

#include <vector>

#include "framework/autodiff/backward.h"
#include "framework/autodiff/op_writer.h"
#include "framework/autodiff/optimizer_spec.h"
#include "framework/ir/name_scope.h"
#include "framework/ir/unique_name.h"

namespace penstock {

// Updates a pair if its gradient gets another name (a sparse gradient becomes dense).
Status AddRegularization(OpWriter& out, UniqueNames& names, NameScopes& scopes, const OptimizerSpec& spec,
                         std::vector<ParamGrad>& params_grads);

}  // namespace penstock
