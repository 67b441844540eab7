// XShape: an output of shape [0, X's extents...], without elements. In Fluid, the gradient of a reshaping op
// reads the shape of X from it, so that X need not be kept.
#pragma once

#include "framework/op/infer_context.h"

namespace penstock {

inline Status SetXShape(InferContext& c) {
  c.SetDType("XShape", c.DTypeOf("X"));
  c.ShareLod("X", "XShape");
  return c.SetShape("XShape", Concat(Shape{0}, c.ShapeOf("X")));
}

// Sets the shape of X@GRAD to the shape in XShape.
inline Status InferFromXShape(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("XShape", 0));
  c.SetDType("X@GRAD", c.DTypeOf("Out@GRAD"));
  c.ShareLod("XShape", "X@GRAD");
  return c.SetShape("X@GRAD", c.ShapeOf("XShape").From(1));
}

}  // namespace penstock
