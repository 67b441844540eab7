// Ops that are linear in one input, as reductions, slices and repetitions are: the gradient of their
// gradient is the op itself.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "framework/op/op_def.h"

namespace penstock {

// For GradDef().GradMadeBy, where the op gives slot `out` of slot `in`: the op itself, from the gradient of
// the gradient of `in`. All other inputs are handed on.
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
