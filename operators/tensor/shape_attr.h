// Shapes that a program gives as an attribute, for the ops that make a tensor from nothing.
#pragma once

#include <vector>

#include "framework/op/infer_context.h"
#include "framework/op/op_def.h"

namespace penstock {

// Out gets the shape in attribute `shape`. Fluid can also take it from tensors; that is an error here, which
// says so.
template <typename Integer>
Status InferShapeFromAttr(InferContext& c) {
  for (const char* slot : {"ShapeTensor", "ShapeTensorList"}) {
    if (!c.HasInput(slot)) continue;
    return Unimplemented("E-op-unimplemented", c.op().type(), ": input ", slot,
                         " is not supported; give attribute shape");
  }
  Shape shape;
  for (const Integer extent : c.Attr<std::vector<Integer>>("shape")) {
    if (extent < 0) return c.Error("attribute shape holds ", extent, "; every extent must be known");
    shape.Append(extent);
  }
  return c.SetShape("Out", shape);
}

// The inputs of those ops and the attributes that all of them have.
inline OpDef& WithShapeInputs(OpDef& def) {
  return def.Input("ShapeTensor", "the shape as a tensor", Integers(), Optional())
      .Input("ShapeTensorList", "the shape as one tensor an extent", Integers(), Optional() | Repeated());
}

}  // namespace penstock
