// Shape inference for gradients that Fluid declares without LoD, although at run time they have the LoD of
// the forward variable.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/infer_context.h"

namespace penstock {

// For GradDef().InferShape: the gradient of each of `inputs` has the input's shape, element type and offsets.
inline std::function<Status(InferContext&)> GradsWithLodUndeclared(std::vector<std::string> inputs) {
  return [inputs = std::move(inputs)](InferContext& c) -> Status {
    for (const std::string& name : inputs) {
      for (int i = 0; i < c.InputCount(name); ++i) {
        PENSTOCK_RETURN_IF_ERROR(c.SetShape(name + kGradSuffix, i, c.ShapeOf(name, i)));
        c.SetDType(name + kGradSuffix, c.DTypeOf(name, i), i);
        c.ShareLodUndeclared(name, i, name + kGradSuffix, i);
      }
    }
    return OkStatus();
  };
}

}  // namespace penstock
