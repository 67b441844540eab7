// Shapes that a program gives as an attribute or as tensors, for ops that create a tensor.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "framework/op/infer_context.h"
#include "framework/op/op_def.h"
#include "operators/common/int_list.h"

namespace penstock {

// Returns the shape that tensors give, as far as it is known before the op runs: attribute `shape` if it has
// an entry for each extent (-1: the extent comes from a tensor), otherwise unknown extents. kInvalidArgument:
// the number of extents is not known.
template <typename Integer>
Result<Shape> FirstShape(const InferContext& c, std::string_view tensor, std::string_view list) {
  const auto told = c.Attr<std::vector<Integer>>("shape");
  Dim rank = ListSize(c, tensor, list);
  if (rank == kUnknownDim) rank = static_cast<Dim>(told.size());
  if (rank == 0) {
    return c.Error(tensor, " (", c.ShapeOf(tensor),
                   ") must hold one element for each extent, how many must be known");
  }
  if (static_cast<Dim>(told.size()) == rank) return Shape(std::vector<Dim>(told.begin(), told.end()));
  return Shape(std::vector<Dim>(static_cast<std::size_t>(rank), kUnknownDim));
}

// Sets the shape of Out to attribute `shape`. kInvalidArgument: a negative extent.
template <typename Integer>
Status InferShapeFromAttr(InferContext& c) {
  Shape shape;
  for (const Integer extent : c.Attr<std::vector<Integer>>("shape")) {
    if (extent < 0) return c.Error("attribute shape holds ", extent, "; every extent must be known");
    shape.Append(extent);
  }
  return c.SetShape("Out", shape);
}

// Sets the shape of Out to attribute `shape`, or, if the op has input ShapeTensor or ShapeTensorList, to
// FirstShape.
inline Status InferGivenShape(InferContext& c) {
  if (IsKnownList(c, "ShapeTensor", "ShapeTensorList")) return InferShapeFromAttr<std::int64_t>(c);
  PENSTOCK_ASSIGN_OR_RETURN(const Shape shape, FirstShape<std::int64_t>(c, "ShapeTensor", "ShapeTensorList"));
  return c.SetShape("Out", shape);
}

// For the kernels of ops that use InferGivenShape.
class GivenShape {
 public:
  void Prepare(const KernelSetup& k) {
    type_ = k.op().type();
    out_ = k.Output("Out");
    extents_.Prepare(k, "shape", "ShapeTensor", "ShapeTensorList");
    shape_ = Shape(std::vector<Dim>(extents_.values().size(), 0));
  }
  // Allocates Out, a tensor or the values of selected rows, if its shape comes from tensors.
  Status Make(KernelRun& k) {
    if (extents_.known()) return OkStatus();
    PENSTOCK_RETURN_IF_ERROR(extents_.Read(k));
    Dim bytes = static_cast<Dim>(SizeOf(out_.dtype));
    for (int i = 0; i < shape_.rank(); ++i) {
      const Dim extent = extents_.values()[static_cast<std::size_t>(i)];
      shape_.Set(i, extent);
      if (extent < 0) return InvalidArgument("E-op-shape", type_, ": its shape from tensors holds ", extent);
      if (__builtin_mul_overflow(bytes, std::max<Dim>(extent, 1), &bytes))
        return InvalidArgument("E-op-shape", type_, ": its shape from tensors, ", Shape(extents_.values()),
                               ", is too large for any memory");
    }
    if (out_.kind == VarKind::kSelectedRows) {
      k.Var(out_).As<SelectedRows>().ResetValue(out_.dtype, shape_);
    } else {
      MakeShaped(k[out_], out_.dtype, shape_);
    }
    return OkStatus();
  }

 private:
  std::string type_;
  TypedOperand out_;
  ListOf<std::int64_t> extents_;
  Shape shape_;  // a member to reuse its memory
};

// Declares the inputs of those ops and the attributes that all of them have.
inline OpDef& WithShapeInputs(OpDef& def) {
  return def.Input("ShapeTensor", "the shape as a tensor", Integers(), Optional())
      .Input("ShapeTensorList", "the shape as one tensor an extent", Integers(), Optional() | Repeated());
}

}  // namespace penstock
