// reshape2, flatten2, and reshape, flatten without XShape: reshape a tensor.
#include <optional>
#include <string>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/copy.h"
#include "operators/common/fluid_attrs.h"
#include "operators/common/int_list.h"
#include "operators/common/shape_attr.h"
#include "operators/tensor/x_shape.h"

namespace penstock {
namespace {

constexpr char kReshapeDoc[] = R"(
Out has the elements of X in the shape of attribute shape, where 0 stands for the same dimension of X, and one
dimension may be -1, which is inferred from the number of elements. If Shape or ShapeTensor (one tensor per
dimension) gives the shape, it is known only when the op runs.)";

constexpr char kFlattenDoc[] = R"(
Out is a matrix: the first `axis` dimensions of X form its rows, the others its columns.)";

// Returns the product of the dimensions, with 1 for dimension `open`; nullopt if it does not fit 64 bits.
std::optional<Dim> ProductWithout(const Shape& shape, int open) {
  Dim product = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (i != open && __builtin_mul_overflow(product, shape[i], &product)) return std::nullopt;
  }
  return product;
}

// Sets `out`, which has the right rank, to the shape that `wanted` describes for X; returns nullopt if that
// is possible, otherwise what is wrong. If a dimension of X is unknown, so is the inferred one.
std::optional<std::string> Resolve(const Shape& x, const std::vector<std::int32_t>& wanted, Shape& out) {
  if (wanted.empty()) return "attribute shape must not be empty";
  int open = -1;
  for (int i = 0; i < static_cast<int>(wanted.size()); ++i) {
    const std::int32_t extent = wanted[static_cast<std::size_t>(i)];
    if (extent == -1 && open >= 0)
      return StrCat("attribute shape holds -1 twice (extents ", open, " and ", i, ")");
    if (extent < -1) return StrCat("attribute shape holds ", extent, "; an extent is at least -1");
    if (extent == 0 && i >= x.rank()) {
      return StrCat("extent ", i, " of attribute shape is 0, which copies X's, and X has only ", x.rank(),
                    " extents");
    }
    if (extent == -1) open = i;
    out.Set(i, extent == 0 ? x[i] : extent);
  }
  if (!x.IsKnown()) return std::nullopt;
  const std::optional<Dim> rest = ProductWithout(out, open);
  const Dim count = x.Count();
  const bool fits = rest && (open < 0 ? *rest == count : *rest > 0 ? count % *rest == 0 : count == 0);
  if (!fits) return StrCat("X (", x, ", ", count, " elements) cannot take shape ", out);
  if (open >= 0) out.Set(open, *rest > 0 ? count / *rest : 0);
  return std::nullopt;
}

Shape WithExtents(std::size_t rank) { return Shape(std::vector<Dim>(rank, kUnknownDim)); }

Status InferReshape(InferContext& c) {
  const Shape& x = c.ShapeOf("X");
  const auto wanted = c.Attr<std::vector<std::int32_t>>("shape");
  Shape out = WithExtents(wanted.size());
  if (!IsKnownList(c, "Shape", "ShapeTensor")) {
    PENSTOCK_ASSIGN_OR_RETURN(out, FirstShape<std::int32_t>(c, "Shape", "ShapeTensor"));
    for (int i = 0; i < out.rank(); ++i) {
      if (out[i] == 0) out.Set(i, i < x.rank() ? x[i] : kUnknownDim);
    }
  } else if (const auto mistake = Resolve(x, wanted, out)) {
    return c.Error(*mistake);
  }
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("X", "Out"));
  if (x.rank() > 0 && out[0] != x[0]) c.SetLodLevel("Out", 0);  // the rows are no longer X's rows
  if (c.HasOutput("XShape")) PENSTOCK_RETURN_IF_ERROR(SetXShape(c));
  return c.SetShape("Out", out);
}

class ReshapeKernel : public CopyKernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_);
    shape_.Prepare(k, "shape", "Shape", "ShapeTensor");
    made_ = WithExtents(shape_.values().size());
    if (shape_.known()) return PrepareCopy(k, "X", "Out");
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (shape_.known()) return CopyKernel::Run(k);
    PENSTOCK_RETURN_IF_ERROR(shape_.Read(k));
    if (const auto mistake = Resolve(k[x_].shape(), shape_.values(), made_))
      return InvalidArgument("E-op-reshape", "reshape2: ", *mistake);
    PutInShape(k, x_, out_, made_);
    return OkStatus();
  }

 private:
  In<"X"> x_;
  Out<"Out"> out_;
  IntList shape_;
  Shape made_;  // kept for its memory
};

Status InferFlatten(InferContext& c) {
  const Shape& x = c.ShapeOf("X");
  const int axis = c.Attr<int>("axis");
  if (axis > x.rank()) return c.Error("axis (", axis, ") must be at most the rank of X (", x.rank(), ")");
  const Shape out = {x.Product(0, axis), x.Product(axis, x.rank())};
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("X", "Out"));
  // With unknown dimensions, the rows are the same only if the row dimension has no other factors.
  const bool same_rows =
      x.rank() == 0 || (out[0] == x[0] && (x[0] != kUnknownDim || x.Product(1, axis) == 1));
  if (!same_rows) c.SetLodLevel("Out", 0);
  if (c.HasOutput("XShape")) PENSTOCK_RETURN_IF_ERROR(SetXShape(c));
  return c.SetShape("Out", out);
}

class ReshapeSecondOrderKernel : public CopyKernel {
 public:
  Status Prepare(KernelSetup& k) override { return PrepareCopy(k, "DDX", "DDOut"); }
};

Result<std::vector<Op>> MakeReshapeSecondOrder(const GradRequest& request) {
  const Op& forward = request.forward;
  const std::string ddout = request.grad_of(forward.InputName("Out@GRAD"));
  if (ddout.empty()) return std::vector<Op>();
  Op op("reshape2_grad_grad");
  op.AddInput("DOut", {forward.InputName("Out@GRAD")});
  op.AddInput("DDX", {request.grad_of(forward.OutputName("X@GRAD"))}).AddOutput("DDOut", {ddout});
  for (const NamedAttr& attr : forward.attrs()) op.Set(attr.name, attr.value);
  return std::vector<Op>{std::move(op)};
}

OpDef& Finish(OpDef& def) {
  def.Output("Out", "the elements of X in their new shape", SameTypeAs("X"), InPlaceInAnySize())
      .Output("XShape", "no elements; its shape is [0] followed by that of X, for the gradient",
              SameTypeAs("X"), Intermediate())
      .Grad({.reads_outputs = {"XShape"}, .yields = {"X"}});
  def.InPlace("Out", "X");
  def.GradDef()
      .InferShape(InferFromXShape)
      .KernelForAnyType<Cpu, CopyGradKernel>()
      .InPlace("X@GRAD", "Out@GRAD");
  return def;
}

// The ops of programs before XShape: the gradient reads X itself.
OpDef& FinishOld(OpDef& def) {
  def.Output("Out", "the elements of X in their new shape", SameTypeAs("X"), InPlaceInAnySize())
      .Grad({.reads = {"X"}, .yields = {"X"}, .shapes = {"X"}});
  def.InPlace("Out", "X");
  def.GradDef().KernelForAnyType<Cpu, CopyGradKernel>().InPlace("X@GRAD", "Out@GRAD");
  return def;
}

OpDef& DeclareReshape(OpDef& def) {
  return def.Input("X", "any shape", AnyType())
      .Input("Shape", "the shape; replaces the attribute", Integers(), Optional())
      .Input("ShapeTensor", "the shape, one tensor per dimension; replaces the attribute", Integers(),
             Optional() | Repeated())
      .Attr("shape", std::vector<std::int32_t>(), "the shape of Out; 0 and -1 as described above",
            AtLeast(-1))
      .Attr("use_quantizer", false, kNoEffect)
      .InferShape(InferReshape)
      .KernelForAnyType<Cpu, ReshapeKernel>();
}

OpDef& DeclareFlatten(OpDef& def) {
  return def.Input("X", "any shape", AnyType())
      .Attr("axis", 1, "the number of leading dimensions of X that form the rows", AtLeast(0))
      .InferShape(InferFlatten)
      .KernelForAnyType<Cpu, CopyXKernel>();
}

}  // namespace

void RegisterReshape2(OpRegistry& ops) {
  OpDef& reshape = ops.Add("reshape2");
  Finish(DeclareReshape(reshape.Doc("Reshapes a tensor.", kReshapeDoc)));
  FinishOld(DeclareReshape(ops.Add("reshape").Doc("reshape2 without XShape.", kReshapeDoc)));
  reshape.GradDef().GradMadeBy(MakeReshapeSecondOrder);
  ops.Add("reshape2_grad_grad")
      .Doc("The gradient of reshape2_grad.", "DDOut has the elements of DDX in the shape of DOut.")
      .Input("DOut", "the gradient of Out, which gives the shape", AnyType())
      .Input("DDX", "the gradient of X@GRAD", SameTypeAs("DOut"))
      .Output("DDOut", "the gradient of Out@GRAD", SameTypeAs("DOut"), InPlaceInAnySize())
      .Attr("shape", std::vector<std::int32_t>(), kNoEffect)
      .Attr("use_quantizer", false, kNoEffect)
      .InferShape([](InferContext& c) { return c.ShareAll("DOut", "DDOut"); })
      .KernelForAnyType<Cpu, ReshapeSecondOrderKernel>();
  Finish(DeclareFlatten(ops.Add("flatten2").Doc("Reshapes a tensor to a matrix.", kFlattenDoc)));
  FinishOld(DeclareFlatten(ops.Add("flatten").Doc("flatten2 without XShape.", kFlattenDoc)));
}

}  // namespace penstock
