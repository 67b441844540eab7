// reshape2, flatten2: the same elements in another shape.
#include "framework/op/op_registry.h"
#include "operators/fluid_attrs.h"
#include "operators/tensor/copy.h"
#include "operators/tensor/x_shape.h"

namespace penstock {
namespace {

constexpr char kReshapeDoc[] = R"(
Out has X's elements in attribute shape, where 0 stands for X's extent at the same place and one extent may
be -1: it follows from the number of elements.)";

constexpr char kFlattenDoc[] = R"(
Out is a matrix: its rows run over X's first `axis` extents, its columns over the rest.)";

Status InferReshape(InferContext& c) {
  if (c.HasInput("Shape") || c.HasInput("ShapeTensor")) {
    return Unimplemented("E-op-unimplemented",
                         "reshape2: a shape from tensors is not supported; give attribute shape");
  }
  const Shape& x = c.ShapeOf("X");
  const std::vector<std::int32_t> wanted = c.Attr<std::vector<std::int32_t>>("shape");
  if (wanted.empty()) return c.Error("attribute shape must not be empty");
  Shape out;
  int open = -1;
  for (int i = 0; i < static_cast<int>(wanted.size()); ++i) {
    const std::int32_t extent = wanted[static_cast<std::size_t>(i)];
    if (extent == -1 && open >= 0)
      return c.Error("attribute shape holds -1 twice (extents ", open, " and ", i, ")");
    if (extent < -1) return c.Error("attribute shape holds ", extent, "; an extent is at least -1");
    if (extent == 0 && i >= x.rank()) {
      return c.Error("extent ", i, " of attribute shape is 0, which copies X's, and X has only ", x.rank(),
                     " extents");
    }
    if (extent == -1) open = i;
    out.Append(extent == 0 ? x[i] : extent);
  }
  if (x.IsKnown()) {
    Dim rest = 1;
    for (int i = 0; i < out.rank(); ++i) rest *= i == open ? 1 : out[i];
    const bool fits = open < 0 ? rest == x.Count() : rest > 0 ? x.Count() % rest == 0 : x.Count() == 0;
    if (!fits) return c.Error("X (", x, ", ", x.Count(), " elements) cannot take shape ", out);
    if (open >= 0) out.Set(open, rest > 0 ? x.Count() / rest : 0);
  }
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("X", "Out"));
  if (x.rank() > 0 && out[0] != x[0]) c.SetLodLevel("Out", 0);  // the rows are no longer X's rows
  PENSTOCK_RETURN_IF_ERROR(SetXShape(c));
  return c.SetShape("Out", out);
}

Status InferFlatten(InferContext& c) {
  const Shape& x = c.ShapeOf("X");
  const int axis = c.Attr<int>("axis");
  if (axis > x.rank()) return c.Error("axis (", axis, ") must be at most the rank of X (", x.rank(), ")");
  const Shape out = {x.Product(0, axis), x.Product(axis, x.rank())};
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("X", "Out"));
  if (x.rank() > 0 && out[0] != x[0]) c.SetLodLevel("Out", 0);  // the rows are no longer X's rows
  PENSTOCK_RETURN_IF_ERROR(SetXShape(c));
  return c.SetShape("Out", out);
}

OpDef& Finish(OpDef& def) {
  def.Output("Out", "X's elements in their new shape", SameTypeAs("X"))
      .Output("XShape", "no elements; its shape is [0] and X's, for the gradient", SameTypeAs("X"),
              Intermediate())
      .KernelForAnyType<Cpu, CopyXKernel>()
      .Grad({.reads_outputs = {"XShape"}, .yields = {"X"}});
  def.GradDef().InferShape(InferFromXShape).KernelForAnyType<Cpu, CopyGradKernel>();
  return def;
}

}  // namespace

void RegisterReshape2(OpRegistry& ops) {
  Finish(ops.Add("reshape2")
             .Doc("The same elements in another shape.", kReshapeDoc)
             .Input("X", "any shape", AnyType())
             .Input("Shape", "the shape as a tensor", Only(DType::kInt32), Optional())
             .Input("ShapeTensor", "the shape as one tensor an extent", Only(DType::kInt32),
                    Optional() | Repeated()))
      .Attr("shape", std::vector<std::int32_t>(), "Out's shape, with 0 and -1 as above", AtLeast(-1))
      .Attr("use_quantizer", false, kNoEffect)
      .InferShape(InferReshape);
  Finish(ops.Add("flatten2").Doc("X as a matrix.", kFlattenDoc).Input("X", "any shape", AnyType()))
      .Attr("axis", 1, "how many extents of X form the rows", AtLeast(0))
      .InferShape(InferFlatten);
}

}  // namespace penstock
