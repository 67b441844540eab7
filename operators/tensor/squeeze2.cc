// squeeze2, unsqueeze2, and squeeze, unsqueeze without XShape: remove or insert dimensions of 1.
#include <optional>
#include <string>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/copy.h"
#include "operators/common/int_list.h"
#include "operators/tensor/x_shape.h"

namespace penstock {
namespace {

constexpr char kSqueezeDoc[] = R"(
Out is X without those dimensions in `axes` (negative values count from the end) that are 1; if `axes` is
empty, without all dimensions that are 1.)";

constexpr char kUnsqueezeDoc[] = R"(
Out is X with a dimension of 1 inserted at each position in `axes`, one after another; a negative position
counts from the end of the shape at that point. If tensors give the axes, the shape of Out is known only when
the op runs.)";

constexpr char kOldUnsqueezeDoc[] = R"(
Out is X with a dimension of 1 inserted at each position in `axes`, one after another; a negative position
counts from the end of the shape at that point.)";

Status Finish(InferContext& c, const Shape& out) {
  const Shape& x = c.ShapeOf("X");
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("X", "Out"));
  const bool same_rows = x.rank() > 0 && out.rank() > 0 && out[0] == x[0];
  if (!same_rows) c.SetLodLevel("Out", 0);  // the rows are no longer X's rows
  if (c.HasOutput("XShape")) PENSTOCK_RETURN_IF_ERROR(SetXShape(c));
  return c.SetShape("Out", out);
}

Status InferSqueeze(InferContext& c) {
  const Shape& x = c.ShapeOf("X");
  const auto axes = c.Attr<std::vector<std::int32_t>>("axes");
  std::vector<bool> goes(static_cast<std::size_t>(x.rank()), axes.empty());
  for (const std::int32_t axis : axes) {
    const int at = axis < 0 ? axis + x.rank() : axis;
    if (at < 0 || at >= x.rank())
      return c.Error("axes holds ", axis, "; it must be in [", -x.rank(), ", ", x.rank(), ")");
    goes[static_cast<std::size_t>(at)] = true;
  }
  Shape out;
  for (int i = 0; i < x.rank(); ++i) {
    // An unknown dimension in axes is assumed to be 1.
    const bool one = x[i] == 1 || (x[i] == kUnknownDim && !axes.empty());
    if (!goes[static_cast<std::size_t>(i)] || !one) out.Append(x[i]);
  }
  return Finish(c, out);
}

// Inserts the axes into `dims`, one after another; returns nullopt if they fit, otherwise what is wrong.
std::optional<std::string> PutIn(const std::vector<std::int32_t>& axes, std::vector<Dim>& dims) {
  for (const std::int32_t axis : axes) {
    const int rank = static_cast<int>(dims.size());
    const int at = axis < 0 ? axis + rank + 1 : axis;
    if (at < 0 || at > rank)
      return StrCat("axes holds ", axis, "; it must be in [", -rank - 1, ", ", rank, "]");
    dims.insert(dims.begin() + at, 1);
  }
  return std::nullopt;
}

Status InferUnsqueeze(InferContext& c) {
  std::vector<Dim> dims = c.ShapeOf("X").dims();
  if (IsKnownList(c, "AxesTensor", "AxesTensorList")) {
    if (const auto mistake = PutIn(c.Attr<std::vector<std::int32_t>>("axes"), dims)) return c.Error(*mistake);
    return Finish(c, Shape(std::move(dims)));
  }
  const Dim count = ListSize(c, "AxesTensor", "AxesTensorList");
  if (count == kUnknownDim) return c.Error("the number of axes in AxesTensor must be known");
  return Finish(c, Shape(std::vector<Dim>(dims.size() + static_cast<std::size_t>(count), kUnknownDim)));
}

Status InferOldUnsqueeze(InferContext& c) {
  std::vector<Dim> dims = c.ShapeOf("X").dims();
  if (const auto mistake = PutIn(c.Attr<std::vector<std::int32_t>>("axes"), dims)) return c.Error(*mistake);
  return Finish(c, Shape(std::move(dims)));
}

class UnsqueezeKernel : public CopyKernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_);
    axes_.Prepare(k, "axes", "AxesTensor", "AxesTensorList");
    if (axes_.known()) return PrepareCopy(k, "X", "Out");
    made_ = Shape(std::vector<Dim>(k[x_].shape.dims().size() + axes_.values().size(), 1));
    dims_.reserve(made_.dims().size());
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (axes_.known()) return CopyKernel::Run(k);
    PENSTOCK_RETURN_IF_ERROR(axes_.Read(k));
    dims_.assign(k[x_].shape().dims().begin(), k[x_].shape().dims().end());
    if (const auto mistake = PutIn(axes_.values(), dims_))
      return InvalidArgument("E-op-axes", "unsqueeze2: ", *mistake);
    for (int i = 0; i < made_.rank(); ++i) made_.Set(i, dims_[static_cast<std::size_t>(i)]);
    PutInShape(k, x_, out_, made_);
    return OkStatus();
  }

 private:
  In<"X"> x_;
  Out<"Out"> out_;
  IntList axes_;
  std::vector<Dim> dims_;  // kept for their memory
  Shape made_;
};

OpDef& Finish(OpDef& def) {
  def.Output("Out", "the elements of X in their new shape", SameTypeAs("X"), InPlaceInAnySize())
      .Output("XShape", "no elements; its shape is [0] followed by that of X, for the gradient",
              SameTypeAs("X"), Intermediate())
      .Attr("axes", std::vector<std::int32_t>(), "the axes")
      .Grad({.reads_outputs = {"XShape"}, .yields = {"X"}});
  def.InPlace("Out", "X");
  def.GradDef()
      .InferShape(InferFromXShape)
      .KernelForAnyType<Cpu, CopyGradKernel>()
      .InPlace("X@GRAD", "Out@GRAD");
  return def;
}

// The ops of programs before XShape: the gradient reads X itself.
OpDef& FinishOld(OpDef& def, std::string_view type) {
  def.Input("X", "any shape", AnyType())
      .Output("Out", "the elements of X in their new shape", SameTypeAs("X"), InPlaceInAnySize())
      .Attr("axes", std::vector<std::int32_t>(), "the axes")
      .Grad({.reads = {"X"}, .yields = {"X"}, .shapes = {"X"}});
  def.InPlace("Out", "X");
  def.GradDef().KernelForAnyType<Cpu, CopyGradKernel>().InPlace("X@GRAD", "Out@GRAD");
  return def.Doc(StrCat(type == "squeeze" ? "Removes" : "Inserts", " dimensions of 1; without XShape."),
                 type == "squeeze" ? kSqueezeDoc : kOldUnsqueezeDoc);
}

}  // namespace

void RegisterSqueeze2(OpRegistry& ops) {
  Finish(ops.Add("squeeze2").Doc("Removes dimensions of 1.", kSqueezeDoc).Input("X", "any shape", AnyType()))
      .InferShape(InferSqueeze)
      .KernelForAnyType<Cpu, CopyXKernel>();
  Finish(ops.Add("unsqueeze2")
             .Doc("Inserts dimensions of 1.", kUnsqueezeDoc)
             .Input("X", "any shape", AnyType())
             .Input("AxesTensor", "replaces the attribute axes", Integers(), Optional())
             .Input("AxesTensorList", "one tensor per axis; replaces the attribute axes", Integers(),
                    Optional() | Repeated()))
      .InferShape(InferUnsqueeze)
      .KernelForAnyType<Cpu, UnsqueezeKernel>();
  FinishOld(ops.Add("squeeze"), "squeeze").InferShape(InferSqueeze).KernelForAnyType<Cpu, CopyXKernel>();
  FinishOld(ops.Add("unsqueeze"), "unsqueeze")
      .InferShape(InferOldUnsqueeze)
      .KernelForAnyType<Cpu, CopyXKernel>();
}

}  // namespace penstock
