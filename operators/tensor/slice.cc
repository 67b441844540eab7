// slice: a box cut out of a tensor.
#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/grad_shapes.h"
#include "operators/require_shape.h"
#include "operators/rows.h"
#include "operators/tensor/int_list.h"
#include "operators/tensor/strided_loops.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out holds the elements [starts[i], ends[i]) of Input's extent axes[i], and all of every other extent. A
negative start or end counts from the end of the extent, and what lies outside is cut off; at least one
element must be left. Extents in decrease_axis, which must be 1 then, go. Starts and ends may come from
tensors (infer_flags is -1 for those); then Out's shape is known when the op runs.)";

constexpr int kMaxRank = StridedLoops::kMaxExtents;

bool Holds(const std::vector<std::int32_t>& axes, int axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

// Nullopt if axes and decrease_axis are extents of Input, else what is wrong.
std::optional<std::string> AxesMistake(const Shape& input, const std::vector<std::int32_t>& axes,
                                       const std::vector<std::int32_t>& decreased) {
  if (input.rank() > kMaxRank) return StrCat("rank of Input (", input.rank(), ") must be at most ", kMaxRank);
  for (const std::vector<std::int32_t>* list : {&axes, &decreased}) {
    for (const std::int32_t axis : *list) {
      if (axis >= 0 && axis < input.rank()) continue;
      return StrCat(list == &axes ? "axes" : "decrease_axis", " holds ", axis, "; Input (", input, ") has ",
                    input.rank(), " extents");
    }
  }
  return std::nullopt;
}

// The elements [begin, end) of an extent that start and end name. Where the extent goes, [-1, 0) is its last
// element: x[i] becomes [i, i + 1).
struct Range {
  Dim begin = 0, end = 0;
};
Range RangeOf(Dim extent, Dim start, Dim end, bool goes) {
  if (goes && start == -1 && end == 0) end = extent;
  const auto within = [extent](Dim at) { return std::clamp<Dim>(at < 0 ? at + extent : at, 0, extent); };
  return {within(start), within(end)};
}

std::string EmptyRange(Dim start, Dim end, std::int32_t axis, Dim extent) {
  return StrCat("[", start, ", ", end, ") leaves nothing of extent ", axis, " of Input (", extent, ")");
}

// `cut` without the extents that go.
Shape Decreased(const Shape& cut, const std::vector<std::int32_t>& decreased) {
  if (decreased.empty()) return cut;
  Shape out;
  for (int i = 0; i < cut.rank(); ++i) {
    if (!Holds(decreased, i)) out.Append(cut[i]);
  }
  if (out.rank() == 0) out.Append(1);
  return out;
}

Status InferSlice(InferContext& c) {
  const Shape& input = c.ShapeOf("Input");
  const auto axes = c.Attr<std::vector<std::int32_t>>("axes");
  const auto starts = c.Attr<std::vector<std::int32_t>>("starts");
  const auto ends = c.Attr<std::vector<std::int32_t>>("ends");
  const auto decreased = c.Attr<std::vector<std::int32_t>>("decrease_axis");
  if (const auto mistake = AxesMistake(input, axes, decreased)) return c.Error(*mistake);
  const auto flags = c.Attr<std::vector<std::int32_t>>("infer_flags");
  const bool all_known =
      IsKnownList(c, "StartsTensor", "StartsTensorList") && IsKnownList(c, "EndsTensor", "EndsTensorList");
  const bool told = flags.size() == axes.size() && starts.size() == axes.size() && ends.size() == axes.size();
  if (all_known && (starts.size() != axes.size() || ends.size() != axes.size())) {
    return c.Error("axes has ", axes.size(), " entries, starts ", starts.size(), " and ends ", ends.size(),
                   "; they must have as many");
  }
  Shape cut = input;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const Dim extent = input[axes[i]];
    const bool known = all_known || (told && flags[i] != -1);
    if (!known || extent == kUnknownDim) {
      cut.Set(axes[i], Holds(decreased, axes[i]) ? 1 : kUnknownDim);
      continue;
    }
    const Range range = RangeOf(extent, starts[i], ends[i], Holds(decreased, axes[i]));
    if (range.begin >= range.end) return c.Error(EmptyRange(starts[i], ends[i], axes[i], extent));
    cut.Set(axes[i], range.end - range.begin);
  }
  for (const std::int32_t axis : decreased) {
    if (!Compatible(cut[axis], 1))
      return c.Error("extent ", axis, " of the slice (", cut[axis], ") must be 1 to go");
  }
  if (!Holds(axes, 0)) c.ShareLod("Input", "Out");
  return c.SetShape("Out", Decreased(cut, decreased));
}

// Where in Input the slice lies.
class SliceLoops {
 public:
  Status Prepare(const KernelSetup& k) {
    input_ = cut_ = k.Input("Input").shape;
    axes_ = k.Attr<std::vector<std::int32_t>>("axes");
    decreased_ = k.Attr<std::vector<std::int32_t>>("decrease_axis");
    starts_.Prepare(k, "starts", "StartsTensor", "StartsTensorList");
    ends_.Prepare(k, "ends", "EndsTensor", "EndsTensorList");
    if (const auto mistake = AxesMistake(input_, axes_, decreased_)) return k.Error(*mistake);
    if (starts_.values().size() != axes_.size() || ends_.values().size() != axes_.size()) {
      return k.Error("there are ", axes_.size(), " axes, ", starts_.values().size(), " starts and ",
                     ends_.values().size(), " ends; there must be as many");
    }
    begins_.resize(static_cast<std::size_t>(input_.rank()));
    out_ = Decreased(cut_, decreased_);
    if (!known()) return OkStatus();
    if (const auto mistake = Lay()) return k.Error(*mistake);
    return OkStatus();
  }
  Status Update(KernelRun& k) {
    if (known()) return OkStatus();
    PENSTOCK_RETURN_IF_ERROR(starts_.Read(k));
    PENSTOCK_RETURN_IF_ERROR(ends_.Read(k));
    if (const auto mistake = Lay()) return InvalidArgument("E-op-slice", "slice: ", *mistake);
    return OkStatus();
  }
  bool known() const { return starts_.known() && ends_.known(); }
  const Shape& out() const { return out_; }
  const StridedLoops& loops() const { return loops_; }
  std::size_t offset() const { return static_cast<std::size_t>(offset_); }  // in elements

 private:
  std::optional<std::string> Lay() {
    std::ranges::fill(begins_, 0);
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      const Dim extent = input_[axes_[i]];
      const Range range =
          RangeOf(extent, starts_.values()[i], ends_.values()[i], Holds(decreased_, axes_[i]));
      if (range.begin >= range.end)
        return EmptyRange(starts_.values()[i], ends_.values()[i], axes_[i], extent);
      begins_[static_cast<std::size_t>(axes_[i])] = range.begin;
      cut_.Set(axes_[i], range.end - range.begin);
    }
    for (const std::int32_t axis : decreased_) {
      if (cut_[axis] != 1) return StrCat("extent ", axis, " of the slice (", cut_[axis], ") must be 1 to go");
    }
    loops_.Clear();
    offset_ = 0;
    Dim stride = input_.Count();
    for (int i = 0; i < input_.rank(); ++i) {
      stride = input_[i] == 0 ? 0 : stride / input_[i];
      loops_.Add(cut_[i], stride);
      offset_ += begins_[static_cast<std::size_t>(i)] * stride;
    }
    for (int i = 0, kept = 0; i < cut_.rank(); ++i) {
      if (!Holds(decreased_, i)) out_.Set(kept++, cut_[i]);
    }
    return std::nullopt;
  }

  Shape input_, cut_, out_;
  std::vector<std::int32_t> axes_, decreased_;
  std::vector<Dim> begins_;
  IntList starts_, ends_;
  StridedLoops loops_;
  Dim offset_ = 0;
};

class SliceKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    input_ = k.Input("Input");
    out_ = k.Output("Out");
    PENSTOCK_RETURN_IF_ERROR(RequireTensor(k, "Input"));
    return loops_.Prepare(k);
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(loops_.Update(k));
    if (!loops_.known()) MakeShaped(k[out_], input_.dtype, loops_.out());
    if (k[out_].bytes() == 0) return OkStatus();
    const std::size_t size = SizeOf(input_.dtype);
    loops_.loops().Gather(size, k[input_].raw() + loops_.offset() * size, k[out_].raw());
    return OkStatus();
  }

 private:
  Operand input_, out_;
  SliceLoops loops_;
};

// Out@GRAD where the slice was, zeros around it.
class SliceGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    dout_ = k.Input("Out@GRAD");
    dinput_ = k.Output("Input@GRAD");
    PENSTOCK_RETURN_IF_ERROR(loops_.Prepare(k));
    return loops_.known() ? RequireCount(k, "Out@GRAD", loops_.out().Count()) : OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (!dinput_) return OkStatus();
    PENSTOCK_RETURN_IF_ERROR(loops_.Update(k));
    if (k[dout_].count() != loops_.out().Count()) {
      return InvalidArgument("E-op-slice", "slice_grad: Out@GRAD (", k[dout_].shape(),
                             ") must be shaped like the slice (", loops_.out(), ")");
    }
    Tensor& dinput = k[dinput_];
    if (dinput.bytes() == 0) return OkStatus();
    std::memset(dinput.raw(), 0, dinput.bytes());
    const std::size_t size = SizeOf(dout_.dtype);
    loops_.loops().Scatter(size, k[dout_].raw(), dinput.raw() + loops_.offset() * size);
    return OkStatus();
  }

 private:
  Operand dout_, dinput_;
  SliceLoops loops_;
};

}  // namespace

void RegisterSlice(OpRegistry& ops) {
  const std::vector<std::int32_t> none;
  ops.Add("slice")
      .Doc("A box cut out of a tensor.", kDoc)
      .Input("Input", StrCat("rank at most ", kMaxRank), AnyType())
      .Input("StartsTensor", "starts as one tensor", Integers(), Optional())
      .Input("EndsTensor", "ends as one tensor", Integers(), Optional())
      .Input("StartsTensorList", "starts as one tensor an axis", Integers(), Optional() | Repeated())
      .Input("EndsTensorList", "ends as one tensor an axis", Integers(), Optional() | Repeated())
      .Output("Out", "the slice", SameTypeAs("Input"))
      .RequiredAttr("axes", AttrKind::kInts, "which extents are cut")
      .Attr("starts", none, "the first element of each that is taken")
      .Attr("ends", none, "the first element after those")
      .Attr("infer_flags", none, "for each axis, -1 where start or end come from a tensor")
      .Attr("decrease_axis", none, "extents of 1 that go")
      .InferShape(InferSlice)
      .KernelForAnyType<Cpu, SliceKernel>()
      .Grad({.reads = {"Input", "StartsTensor", "EndsTensor", "StartsTensorList", "EndsTensorList"},
             .yields = {"Input"}})
      .GradDef()
      .InferShape(GradsWithLodUndeclared({"Input"}))
      .KernelForAnyType<Cpu, SliceGradKernel>();
}

}  // namespace penstock
