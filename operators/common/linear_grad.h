// Second-order gradients of ops that are linear in one input, such as reductions, slices and repetitions. The
// gradient of their gradient op is the op itself.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "framework/op/op_def.h"

namespace penstock {

// For GradDef().GradMadeBy of an op `type` that computes slot `out` from slot `in`. Makes the op itself,
// applied to the gradient of `in`@GRAD; all other inputs are passed on.
inline GradMaker SameOpOfGrad(std::string type, std::string in, std::string out) {
  return [type = std::move(type), in = std::move(in),
          out = std::move(out)](const GradRequest& request) -> Result<std::vector<Op>> {
    const Op& forward = request.forward;
    const std::string made = request.grad_of(forward.InputName(out + kGradSuffix));
    if (made.empty()) return std::vector<Op>();
    Op op(type);
    op.AddInput(in, {request.grad_of(forward.OutputName(in + kGradSuffix))});
    for (const Slot& slot : forward.inputs()) {
      if (slot.name != in && slot.name != out && slot.name != out + kGradSuffix && !slot.args.empty())
        op.AddInput(slot.name, slot.args);
    }
    op.AddOutput(out, {made});
    for (const NamedAttr& attr : forward.attrs()) op.Set(attr.name, attr.value);
    return std::vector<Op>{std::move(op)};
  };
}

}  // namespace penstock
