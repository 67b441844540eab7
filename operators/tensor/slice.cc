// slice: extracts a box of a tensor. strided_slice: the same with steps, forwards or backwards.
#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/grad_shapes.h"
#include "operators/common/int_list.h"
#include "operators/common/linear_grad.h"
#include "operators/common/require_shape.h"
#include "operators/common/strided_loops.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out holds the elements [starts[i], ends[i]) of dimension axes[i] of Input, and all elements of the other
dimensions. A negative start or end counts from the end of the dimension, and both are clipped to it; at least
one element must remain. Dimensions in decrease_axis are removed; they must be 1. If tensors give starts or
ends, infer_flags is -1 for their axes, and the shape of Out is known only when the op runs.)";

constexpr char kStridedDoc[] = R"(
Like slice, but takes the elements starts[i], starts[i] + strides[i], ... before ends[i] of dimension axes[i],
as in NumPy: a negative stride goes backwards, down to the element after ends[i]. An end below -size then
includes the first element. Like starts and ends, strides may come from tensors.)";

constexpr int kMaxRank = StridedLoops::kMaxExtents;

bool Holds(const std::vector<std::int32_t>& axes, int axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

// Returns nullopt if axes and decrease_axis are dimensions of Input, otherwise what is wrong.
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

// The start, end and stride of one dimension in a program, and the elements begin, begin + stride, ... that
// they select.
struct Cut {
  Dim start = 0, end = 0, stride = 1;
};
struct Range {
  Dim begin = 0, count = 0;
};

// If the dimension is removed, [-1, 0) is its last element: x[i] becomes [i, i + 1). The stride is not 0.
Range RangeOf(Dim extent, Cut cut, bool goes) {
  const bool forwards = cut.stride > 0;
  if (goes && forwards && cut.start == -1 && cut.end == 0) cut.end = extent;
  // When going backwards, both bounds may be one before the first element.
  const Dim least = forwards ? 0 : -1, most = forwards ? extent : extent - 1;
  const auto within = [&](Dim at) { return std::clamp(at < 0 ? at + extent : at, least, most); };
  const Dim begin = within(cut.start), end = within(cut.end);
  const Dim length = forwards ? end - begin : begin - end, step = forwards ? cut.stride : -cut.stride;
  return {begin, length > 0 ? (length + step - 1) / step : 0};
}

// Returns nullopt and sets the range if it is not empty, otherwise returns what is wrong.
std::optional<std::string> FindRange(const Shape& input, std::int32_t axis, const Cut& cut, bool goes,
                                     Range& range) {
  if (cut.stride == 0) return StrCat("strides holds 0 for extent ", axis);
  range = RangeOf(input[axis], cut, goes);
  if (range.count > 0) return std::nullopt;
  const std::string by = cut.stride == 1 ? "" : StrCat(" by ", cut.stride);
  return StrCat("[", cut.start, ", ", cut.end, ")", by, " leaves nothing of extent ", axis, " of Input (",
                input[axis], ")");
}

std::string CountMistake(std::size_t axes, std::size_t starts, std::size_t ends, std::size_t strides) {
  const std::string others = strides == axes ? StrCat(starts, " and ends ", ends)
                                             : StrCat(starts, ", ends ", ends, " and strides ", strides);
  return StrCat("axes has ", axes, " entries, starts ", others, "; the numbers must be equal");
}

// Returns `cut` without the dimensions to remove.
Shape Decreased(const Shape& cut, const std::vector<std::int32_t>& decreased) {
  if (decreased.empty()) return cut;
  Shape out;
  for (int i = 0; i < cut.rank(); ++i) {
    if (!Holds(decreased, i)) out.Append(cut[i]);
  }
  if (out.rank() == 0) out.Append(1);
  return out;
}

template <bool kStrided>
Status InferSlice(InferContext& c) {
  const Shape& input = c.ShapeOf("Input");
  const auto axes = c.Attr<std::vector<std::int32_t>>("axes");
  const auto starts = c.Attr<std::vector<std::int32_t>>("starts");
  const auto ends = c.Attr<std::vector<std::int32_t>>("ends");
  std::vector<std::int32_t> strides(axes.size(), 1);
  if constexpr (kStrided) strides = c.Attr<std::vector<std::int32_t>>("strides");
  const auto decreased = c.Attr<std::vector<std::int32_t>>("decrease_axis");
  if (const auto mistake = AxesMistake(input, axes, decreased)) return c.Error(*mistake);
  const auto flags = c.Attr<std::vector<std::int32_t>>("infer_flags");
  const bool all_known = IsKnownList(c, "StartsTensor", "StartsTensorList") &&
                         IsKnownList(c, "EndsTensor", "EndsTensorList") &&
                         (!kStrided || IsKnownList(c, "StridesTensor", "StridesTensorList"));
  const bool as_many =
      starts.size() == axes.size() && ends.size() == axes.size() && strides.size() == axes.size();
  if (all_known && !as_many)
    return c.Error(CountMistake(axes.size(), starts.size(), ends.size(), strides.size()));
  const bool told = as_many && flags.size() == axes.size();
  Shape cut = input;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const bool goes = Holds(decreased, axes[i]);
    const bool known = all_known || (told && flags[i] != -1);
    if (known && strides[i] == 0) return c.Error("strides holds 0 for extent ", axes[i]);
    if (!known || input[axes[i]] == kUnknownDim) {
      cut.Set(axes[i], goes ? 1 : kUnknownDim);
      continue;
    }
    Range range;
    if (const auto mistake = FindRange(input, axes[i], {starts[i], ends[i], strides[i]}, goes, range))
      return c.Error(*mistake);
    cut.Set(axes[i], range.count);
  }
  for (const std::int32_t axis : decreased) {
    if (!Compatible(cut[axis], 1))
      return c.Error("extent ", axis, " of the slice (", cut[axis], ") must be 1 to be removed");
  }
  if (!Holds(axes, 0)) c.ShareLod("Input", "Out");
  return c.SetShape("Out", Decreased(cut, decreased));
}

// The position of the slice in Input.
template <bool kStrided>
class SliceLoops {
 public:
  Status Prepare(const KernelSetup& k) {
    type_ = k.op().type();
    input_ = cut_ = k.Input("Input").shape;
    axes_ = k.Attr<std::vector<std::int32_t>>("axes");
    decreased_ = k.Attr<std::vector<std::int32_t>>("decrease_axis");
    starts_.Prepare(k, "starts", "StartsTensor", "StartsTensorList");
    ends_.Prepare(k, "ends", "EndsTensor", "EndsTensorList");
    if constexpr (kStrided) strides_.Prepare(k, "strides", "StridesTensor", "StridesTensorList");
    if (const auto mistake = AxesMistake(input_, axes_, decreased_)) return k.Error(*mistake);
    const std::size_t starts = starts_.values().size(), ends = ends_.values().size();
    const std::size_t strides = kStrided ? strides_.values().size() : axes_.size();
    if (starts != axes_.size() || ends != axes_.size() || strides != axes_.size())
      return k.Error(CountMistake(axes_.size(), starts, ends, strides));
    begins_.resize(static_cast<std::size_t>(input_.rank()));
    steps_.resize(begins_.size());
    out_ = Decreased(cut_, decreased_);
    if (!known()) return OkStatus();
    if (const auto mistake = Lay()) return k.Error(*mistake);
    return OkStatus();
  }
  Status Update(KernelRun& k) {
    if (known()) return OkStatus();
    PENSTOCK_RETURN_IF_ERROR(starts_.Read(k));
    PENSTOCK_RETURN_IF_ERROR(ends_.Read(k));
    if constexpr (kStrided) PENSTOCK_RETURN_IF_ERROR(strides_.Read(k));
    if (const auto mistake = Lay()) return InvalidArgument("E-op-slice", type_, ": ", *mistake);
    return OkStatus();
  }
  bool known() const { return starts_.known() && ends_.known() && (!kStrided || strides_.known()); }
  const Shape& out() const { return out_; }
  const StridedLoops& loops() const { return loops_; }
  std::size_t offset() const { return static_cast<std::size_t>(offset_); }  // in elements

 private:
  std::optional<std::string> Lay() {
    std::ranges::fill(begins_, 0);
    std::ranges::fill(steps_, 1);
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      const auto axis = static_cast<std::size_t>(axes_[i]);
      Cut cut{starts_.values()[i], ends_.values()[i]};
      if constexpr (kStrided) cut.stride = strides_.values()[i];
      Range range;
      if (auto mistake = FindRange(input_, axes_[i], cut, Holds(decreased_, axes_[i]), range)) return mistake;
      begins_[axis] = range.begin;
      steps_[axis] = cut.stride;
      cut_.Set(axes_[i], range.count);
    }
    for (const std::int32_t axis : decreased_) {
      if (cut_[axis] != 1)
        return StrCat("extent ", axis, " of the slice (", cut_[axis], ") must be 1 to be removed");
    }
    loops_.Clear();
    offset_ = 0;
    Dim stride = input_.Count();
    for (int i = 0; i < input_.rank(); ++i) {
      stride = input_[i] == 0 ? 0 : stride / input_[i];
      loops_.Add(cut_[i], stride * steps_[static_cast<std::size_t>(i)]);
      offset_ += begins_[static_cast<std::size_t>(i)] * stride;
    }
    for (int i = 0, kept = 0; i < cut_.rank(); ++i) {
      if (!Holds(decreased_, i)) out_.Set(kept++, cut_[i]);
    }
    return std::nullopt;
  }

  std::string type_;
  Shape input_, cut_, out_;
  std::vector<std::int32_t> axes_, decreased_;
  std::vector<Dim> begins_, steps_;  // of each dimension of Input
  IntList starts_, ends_, strides_;
  StridedLoops loops_;
  Dim offset_ = 0;
};

template <bool kStrided>
class SliceKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(input_, out_);
    return loops_.Prepare(k);
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(loops_.Update(k));
    if (!loops_.known()) MakeShaped(k[out_], k[input_].dtype(), loops_.out());
    if (k[out_].bytes() == 0) return OkStatus();
    const std::size_t size = SizeOf(k[input_].dtype());
    loops_.loops().Gather(size, k[input_].raw() + loops_.offset() * size, k[out_].raw());
    return OkStatus();
  }

 private:
  In<"Input"> input_;
  Out<"Out"> out_;
  SliceLoops<kStrided> loops_;
};

// Copies Out@GRAD to the position of the slice, with zeros around it.
template <bool kStrided>
class SliceGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    type_ = k.op().type();
    k.Bind(dout_, dinput_);
    PENSTOCK_RETURN_IF_ERROR(loops_.Prepare(k));
    return loops_.known() ? RequireCount(k, "Out@GRAD", loops_.out().Count()) : OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (!dinput_) return OkStatus();
    PENSTOCK_RETURN_IF_ERROR(loops_.Update(k));
    if (k[dout_].count() != loops_.out().Count()) {
      return InvalidArgument("E-op-slice", type_, ": Out@GRAD (", k[dout_].shape(),
                             ") must be shaped like the slice (", loops_.out(), ")");
    }
    Tensor& dinput = k[dinput_];
    if (dinput.bytes() == 0) return OkStatus();
    std::memset(dinput.raw(), 0, dinput.bytes());
    const std::size_t size = SizeOf(k[dout_].dtype());
    loops_.loops().Scatter(size, k[dout_].raw(), dinput.raw() + loops_.offset() * size);
    return OkStatus();
  }

 private:
  std::string type_;
  In<"Out@GRAD"> dout_;
  Out<"Input@GRAD"> dinput_;
  SliceLoops<kStrided> loops_;
};

// Declares what both ops have in common: starts and ends, which may come from tensors.
OpDef& AddSlice(OpRegistry& ops, const std::string& type, const std::string& summary, std::string_view doc) {
  const std::vector<std::int32_t> none;
  return ops.Add(type)
      .Doc(summary, doc)
      .Input("Input", StrCat("rank at most ", kMaxRank), AnyType())
      .Input("StartsTensor", "replaces the attribute starts", Integers(), Optional())
      .Input("EndsTensor", "replaces the attribute ends", Integers(), Optional())
      .Input("StartsTensorList", "one tensor per axis; replaces the attribute starts", Integers(),
             Optional() | Repeated())
      .Input("EndsTensorList", "one tensor per axis; replaces the attribute ends", Integers(),
             Optional() | Repeated())
      .Output("Out", "the slice", SameTypeAs("Input"))
      .RequiredAttr("axes", AttrKind::kInts, "the axes to slice")
      .Attr("starts", none, "the first element to take along each axis")
      .Attr("ends", none, "the end along each axis, not included")
      .Attr("infer_flags", none, "for each axis, -1 if its start or end comes from a tensor")
      .Attr("decrease_axis", none, "dimensions of 1 to remove");
}

}  // namespace

void RegisterSlice(OpRegistry& ops) {
  AddSlice(ops, "slice", "Extracts a box of a tensor.", kDoc)
      .InferShape(InferSlice<false>)
      .KernelForAnyType<Cpu, SliceKernel<false>>()
      .Grad({.reads = {"Input", "StartsTensor", "EndsTensor", "StartsTensorList", "EndsTensorList"},
             .yields = {"Input"},
             .shapes = {"Input"},
             .apart = {"Input"}})
      .GradDef()
      .InferShape(GradsWithLodUndeclared({"Input"}))
      .KernelForAnyType<Cpu, SliceGradKernel<false>>()
      .GradMadeBy(SameOpOfGrad("slice", "Input", "Out"));
  AddSlice(ops, "strided_slice", "Extracts a box of a tensor with steps, forwards or backwards.", kStridedDoc)
      .Input("StridesTensor", "replaces the attribute strides", Integers(), Optional())
      .Input("StridesTensorList", "one tensor per axis; replaces the attribute strides", Integers(),
             Optional() | Repeated())
      .Attr("strides", std::vector<std::int32_t>(), "the steps")
      .InferShape(InferSlice<true>)
      .KernelForAnyType<Cpu, SliceKernel<true>>()
      .Grad({.reads = {"Input", "StartsTensor", "EndsTensor", "StridesTensor", "StartsTensorList",
                       "EndsTensorList", "StridesTensorList"},
             .yields = {"Input"},
             .shapes = {"Input"},
             .apart = {"Input"}})
      .GradDef()
      .InferShape(GradsWithLodUndeclared({"Input"}))
      .KernelForAnyType<Cpu, SliceGradKernel<true>>();
}

}  // namespace penstock
