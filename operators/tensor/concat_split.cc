// concat, split, split_byref: join tensors along one axis, and split them.
#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/fluid_attrs.h"
#include "operators/common/int_list.h"
#include "operators/common/lod.h"
#include "operators/common/require_shape.h"
#include "operators/common/rows.h"
#include "operators/common/strips.h"

namespace penstock {
namespace {

constexpr char kConcatDoc[] = R"(
Out concatenates X[0], X[1], ... along dimension `axis` (negative values count from the end); all other
dimensions must be equal. If AxisTensor gives the axis, the shape of Out is known only when the op runs. If
rows are concatenated, Out has the sequences of X[0], then those of X[1], ..., or no LoD if one of the inputs
has none. Otherwise it has the LoD of X[0].)";

constexpr char kSplitDoc[] = R"(
Out[i] is the i-th part of X along dimension `axis` (negative values count from the end). X is split into
`num` equal parts or, if num is 0, into parts whose sizes are `sections`, one of which may be -1: the rest. If
tensors give the axis or the sections, the shapes of the parts are known only when the op runs.)";

constexpr char kSplitRowsDoc[] = R"(
Out[i] is the i-th part of the rows of X. X is split into `num` equal parts or, if num is 0, into parts with
`sections` rows. If the executor makes the parts views of X, nothing is copied.)";

using Mistake = std::optional<std::string>;

// Converts `axis` to a nonnegative number.
Mistake ResolveAxis(int rank, int& axis) {
  const int given = axis;
  if (axis < 0) axis += rank;
  if (axis >= 0 && axis < rank) return std::nullopt;
  return StrCat("axis (", given, ") must be within the rank of X (", rank, ")");
}

// Sets `out` to the shape of the concatenation of at(0), at(1), ...
template <typename ShapeAt>
Mistake JoinShapes(ShapeAt at, int count, int& axis, Shape& out) {
  out = at(0);
  if (Mistake mistake = ResolveAxis(out.rank(), axis)) return mistake;
  for (int i = 1; i < count; ++i) {
    const Shape& next = at(i);
    if (next.rank() != out.rank())
      return StrCat("rank of X[", i, "] (", next.rank(), ") must equal that of X[0] (", out.rank(), ")");
    for (int d = 0; d < out.rank(); ++d) {
      if (d == axis) {
        out.Set(d, out[d] == kUnknownDim || next[d] == kUnknownDim ? kUnknownDim : out[d] + next[d]);
      } else if (!Compatible(out[d], next[d])) {
        return StrCat("extent ", d, " of X[", i, "] (", next[d], ") must equal that of X[0] (", out[d], ")");
      } else if (out[d] == kUnknownDim) {
        out.Set(d, next[d]);
      }
    }
  }
  return std::nullopt;
}

Status RequireOneElement(const InferContext& c, const char* slot) {
  if (!c.HasInput(slot) || Compatible(c.ShapeOf(slot).Count(), 1)) return OkStatus();
  return c.Error(slot, " (", c.ShapeOf(slot), ") must hold one element");
}

Status InferConcat(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(RequireOneElement(c, "AxisTensor"));
  c.SetDType("Out", c.DTypeOf("X"));
  c.SetLodLevel("Out", c.Input("X").lod_level);
  if (c.HasInput("AxisTensor")) {
    const auto rank = static_cast<std::size_t>(c.ShapeOf("X").rank());
    return c.SetShape("Out", Shape(std::vector<Dim>(rank, kUnknownDim)));
  }
  Shape out;
  int axis = c.Attr<int>("axis");
  const auto at = [&](int i) -> const Shape& { return c.ShapeOf("X", i); };
  if (const Mistake mistake = JoinShapes(at, c.InputCount("X"), axis, out)) return c.Error(*mistake);
  if (axis != 0) c.ShareLod("X", "Out");
  return c.SetShape("Out", out);
}

// A negative axis may be the first one too; this is not worth a check of the rank.
bool JoinsRows(const Op& op) {
  return op.Input("AxisTensor").empty() && op.GetOr<std::int32_t>("axis", 0) == 0;
}

// The positions of the arguments of concat in the result, for the op and its gradient.
class JoinedStrips {
 public:
  // `parts` are the variables at these positions, as many as X has.
  Status Prepare(const KernelSetup& k, std::span<const Argument> parts) {
    type_ = k.op().type();
    xs_.assign(k.Inputs("X").begin(), k.Inputs("X").end());
    extents_.resize(xs_.size());
    strips_.Prepare(parts);
    PENSTOCK_RETURN_IF_ERROR(axis_.Prepare(k, "axis", "AxisTensor"));
    if (!axis_.known()) return OkStatus();
    const Mistake mistake = Lay();
    return mistake ? k.Error(*mistake) : OkStatus();
  }
  Status Update(KernelRun& k) {
    if (axis_.known()) return OkStatus();
    PENSTOCK_RETURN_IF_ERROR(axis_.Read(k));
    const Mistake mistake = Lay();
    return mistake ? InvalidArgument("E-op-axis", type_, ": ", *mistake) : OkStatus();
  }
  bool known() const { return axis_.known(); }
  int axis() const { return at_; }  // counted from the first dimension
  const Shape& whole() const { return whole_; }
  const Strips& strips() const { return strips_; }

 private:
  Mistake Lay() {
    at_ = axis_.value();
    const auto at = [this](int i) -> const Shape& { return xs_[static_cast<std::size_t>(i)].shape; };
    if (Mistake mistake = JoinShapes(at, static_cast<int>(xs_.size()), at_, whole_)) return mistake;
    for (std::size_t i = 0; i < xs_.size(); ++i) extents_[i] = xs_[i].shape[at_];
    strips_.Lay(whole_, at_, SizeOf(xs_[0].dtype), extents_);
    return std::nullopt;
  }

  std::string type_;
  std::vector<TensorDesc> xs_;
  std::vector<Dim> extents_;
  GivenInt axis_;
  int at_ = 0;
  Shape whole_;
  Strips strips_;
};

// Concatenates the sequences of tensors joined by rows.
class JoinedSequences {
 public:
  void Prepare(const KernelSetup& k) { xs_.assign(k.Inputs("X").begin(), k.Inputs("X").end()); }

  Status Give(KernelRun& k, Tensor& out) {
    const auto falls_into_sequences = [&k](const NamedOperand& x) {
      const LoD& lod = k[x].lod();
      return !lod.empty() && CheckLod(std::string(x.name), lod, k[x].shape()[0], 1).ok();
    };
    if (!std::ranges::all_of(xs_, falls_into_sequences)) {
      lod_.Set(out, {});
      return OkStatus();
    }
    const std::size_t levels = k[xs_[0]].lod().size();
    lod_.Start(levels);
    for (const NamedOperand& x : xs_) {
      const LoD& lod = k[x].lod();
      if (lod.size() != levels) {
        return LodError("concat: ", x.name, " has ", lod.size(), " levels of sequences, ", xs_[0].name,
                        " has ", levels);
      }
      for (std::size_t l = 0; l < levels; ++l) {
        const Offsets level(lod[l]);
        for (Dim s = 0; s < level.count(); ++s) lod_.Add(l, level.length(s));
      }
    }
    lod_.Set(out);
    return OkStatus();
  }
  // For tensors joined along another dimension.
  void GiveFirst(KernelRun& k, Tensor& out) const { out.ShareLod(k[xs_[0]]); }

 private:
  std::vector<NamedOperand> xs_;
  MadeLod lod_;
};

class ConcatKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    out_ = k.Output("Out");
    for (const Argument& x : k.Inputs("X")) {
      if (x.dtype != out_.dtype)
        return k.Error("element types of X differ (", DTypeName(x.dtype), ", ", DTypeName(out_.dtype), ")");
    }
    sequences_.Prepare(k);
    return joined_.Prepare(k, k.Inputs("X"));
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(joined_.Update(k));
    if (!joined_.known()) MakeShaped(k[out_], out_.dtype, joined_.whole());
    joined_.strips().Join(k, k[out_]);
    if (joined_.axis() == 0) return sequences_.Give(k, k[out_]);
    if (!joined_.known()) sequences_.GiveFirst(k, k[out_]);
    return OkStatus();
  }

 private:
  TypedOperand out_;
  JoinedStrips joined_;
  JoinedSequences sequences_;
};

// Splits Out@GRAD into the gradients of the arguments; skips those that are not requested.
class ConcatGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(dout_);
    std::vector<Argument> grads(k.Outputs("X@GRAD").begin(), k.Outputs("X@GRAD").end());
    grads.resize(k.Inputs("X").size());
    PENSTOCK_RETURN_IF_ERROR(joined_.Prepare(k, grads));
    return joined_.known() ? RequireShape(k, "Out@GRAD", joined_.whole()) : OkStatus();
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(joined_.Update(k));
    if (k[dout_].shape() != joined_.whole()) {
      return InvalidArgument("E-op-axis", "concat_grad: shape of Out@GRAD (", k[dout_].shape(), ") must be ",
                             joined_.whole());
    }
    joined_.strips().Cut(k, k[dout_]);
    return OkStatus();
  }

 private:
  In<"Out@GRAD"> dout_;
  JoinedStrips joined_;
};

// Sets `parts` to the sizes of the parts of `whole`, one for each output.
Mistake PartExtents(const std::vector<std::int32_t>& sections, int num, Dim whole, std::vector<Dim>& parts) {
  const std::size_t count = parts.size();
  if (num > 0 || sections.empty()) {
    if (num <= 0 || static_cast<std::size_t>(num) != count)
      return StrCat("num (", num, ") must equal the number of outputs (", count, ")");
    if (whole != kUnknownDim && whole % num != 0)
      return StrCat("extent ", whole, " cannot be cut into ", num, " equal parts");
    std::ranges::fill(parts, whole == kUnknownDim ? kUnknownDim : whole / num);
    return std::nullopt;
  }
  if (sections.size() != count)
    return StrCat("sections name ", sections.size(), " parts for ", count, " outputs");
  std::ranges::copy(sections, parts.begin());
  if (whole == kUnknownDim) return std::nullopt;
  Dim known = 0;
  for (const Dim part : parts) known += std::max<Dim>(part, 0);
  const auto open = std::ranges::count(parts, kUnknownDim);
  if (open > 1 || known > whole || (open == 0 && known != whole) || std::ranges::min(parts) < -1) {
    return StrCat("sections ", AttrToString(sections), " must add up to ", whole,
                  open > 0 ? ", with -1 at most once" : "");
  }
  for (Dim& part : parts) part = part == kUnknownDim ? whole - known : part;
  return std::nullopt;
}

Status InferParts(InferContext& c, int axis) {
  const Shape& x = c.ShapeOf("X");
  if (const Mistake mistake = ResolveAxis(x.rank(), axis)) return c.Error(*mistake);
  std::vector<Dim> parts(c.op().Output("Out").size());
  const auto sections = c.Attr<std::vector<std::int32_t>>("sections");
  // Sections given by tensors are -1 here; any number of them may be.
  const Dim whole = c.HasInput("SectionsTensorList") ? kUnknownDim : x[axis];
  if (const Mistake mistake = PartExtents(sections, c.Attr<int>("num"), whole, parts))
    return c.Error(*mistake);
  for (int i = 0; i < static_cast<int>(parts.size()); ++i) {
    Shape part = x;
    part.Set(axis, parts[static_cast<std::size_t>(i)]);
    PENSTOCK_RETURN_IF_ERROR(c.SetShape("Out", i, part));
    if (axis == 0) {
      c.SetLodLevel("Out", 0, i);
    } else {
      c.ShareLod("X", 0, "Out", i);
    }
  }
  return OkStatus();
}

Status InferSplit(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(RequireOneElement(c, "AxisTensor"));
  if (!c.HasInput("AxisTensor")) return InferParts(c, c.Attr<int>("axis"));
  const auto rank = static_cast<std::size_t>(c.ShapeOf("X").rank());
  for (int i = 0; i < static_cast<int>(c.op().Output("Out").size()); ++i) {
    PENSTOCK_RETURN_IF_ERROR(c.SetShape("Out", i, Shape(std::vector<Dim>(rank, kUnknownDim))));
  }
  return OkStatus();
}

Status InferSplitRows(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("X", 0));
  return InferParts(c, 0);
}

template <bool kRows>
class SplitKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_);
    out_.assign(k.Outputs("Out").begin(), k.Outputs("Out").end());
    for (const Operand& out : out_) {
      if (out && out.index == x_.index)
        return k.Error("Out must be another variable than X (", k[x_].name, ")");
    }
    num_ = k.Attr<int>("num");
    sections_.Prepare(k, "sections", "", kRows ? "" : "SectionsTensorList");
    if constexpr (!kRows) PENSTOCK_RETURN_IF_ERROR(axis_.Prepare(k, "axis", "AxisTensor"));
    strips_.Prepare(out_);
    parts_.resize(out_.size());
    whole_ = k[x_];
    part_ = whole_.shape;
    if (!known()) return OkStatus();
    const Mistake mistake = Lay();
    return mistake ? k.Error(*mistake) : OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (!known()) PENSTOCK_RETURN_IF_ERROR(Update(k));
    strips_.Cut(k, k[x_]);
    return OkStatus();
  }

 private:
  bool known() const { return sections_.known() && axis_.known(); }

  Mistake Lay() {
    at_ = axis_.value();
    const Shape& x = whole_.shape;
    if (Mistake mistake = ResolveAxis(x.rank(), at_)) return mistake;
    if (Mistake mistake = PartExtents(sections_.values(), num_, x[at_], parts_)) return mistake;
    strips_.Lay(x, at_, SizeOf(whole_.dtype), parts_);
    return std::nullopt;
  }

  Status Update(KernelRun& k) {
    PENSTOCK_RETURN_IF_ERROR(sections_.Read(k));
    PENSTOCK_RETURN_IF_ERROR(axis_.Read(k));
    if (const Mistake mistake = Lay()) return InvalidArgument("E-op-axis", "split: ", *mistake);
    for (std::size_t i = 0; i < out_.size(); ++i) {
      if (!out_[i]) continue;
      part_ = k[x_].shape();
      part_.Set(at_, parts_[i]);
      MakeShaped(k[out_[i]], k[x_].dtype(), part_);
    }
    return OkStatus();
  }

  In<"X"> x_;
  TensorDesc whole_;  // the type of X
  std::vector<Operand> out_;
  int num_ = 0, at_ = 0;
  GivenInt axis_;
  IntList sections_;
  std::vector<Dim> parts_;  // sizes of the parts
  Shape part_;              // kept for its memory
  Strips strips_;
};

// Concatenates the gradients of the parts by an op that keeps the attributes of the forward op, as in Fluid.
Result<std::vector<Op>> SplitGrad(const GradRequest& request) {
  const Op& forward = request.forward;
  const std::string dx = request.grad_of(forward.InputName("X"));
  if (dx.empty()) return std::vector<Op>();
  Op grad("concat");
  std::vector<std::string> parts;
  for (const std::string& out : forward.Output("Out")) parts.push_back(request.grad_of(out));
  grad.AddInput("X", parts);
  if (forward.HasInputSlot("AxisTensor")) grad.AddInput("AxisTensor", forward.Input("AxisTensor"));
  grad.AddOutput("Out", {dx});
  for (const NamedAttr& attr : forward.attrs()) grad.Set(attr.name, attr.value);
  return std::vector<Op>{std::move(grad)};
}

}  // namespace

void RegisterConcatSplit(OpRegistry& ops) {
  ops.Add("concat")
      .Doc("Concatenates tensors along one axis.", kConcatDoc)
      .Input("X", "tensors with equal dimensions, except along the axis", AnyType(), Repeated())
      .Input("AxisTensor", "the axis; replaces the attribute", Integers(), Optional())
      .Output("Out", "the concatenation", SameTypeAs("X"), Apart())
      .Attr("use_mkldnn", false, kNoEffect)
      .Attr("axis", 0, "the axis along which to concatenate")
      .Attr("use_quantizer", false, kNoEffect)
      .InferShape(InferConcat)
      .PartsAreRows({.whole = "Out", .parts = "X", .when = JoinsRows})
      .KernelForAnyType<Cpu, ConcatKernel>()
      .ChannelsLast(ByAxis({"X", "Out"}))
      .Grad({.reads = {"X", "AxisTensor"}, .yields = {"X"}, .shapes = {"X"}})
      .GradDef()
      .KernelForAnyType<Cpu, ConcatGradKernel>();
  ops.Add("split")
      .Doc("Splits a tensor along one axis.", kSplitDoc)
      .Input("X", "any shape", AnyType())
      .Input("AxisTensor", "the axis; replaces the attribute", Integers(), Optional())
      .Input("SectionsTensorList", "one tensor per part with its size; replaces sections", Integers(),
             Optional() | Repeated())
      .Output("Out", "the parts", SameTypeAs("X"), Repeated())
      .Attr("sections", std::vector<std::int32_t>(), "the size of each part", AtLeast(-1))
      .Attr("num", 0, "the number of equal parts; 0: use sections", AtLeast(0))
      .Attr("axis", 0, "the axis to split")
      .InferShape(InferSplit)
      .KernelForAnyType<Cpu, SplitKernel<false>>()
      .ChannelsLast(ByAxis({"X", "Out"}))
      .GradMadeBy(SplitGrad);
  ops.Add("split_byref")
      .Doc("Splits a tensor by rows, to send the parts to several pservers.", kSplitRowsDoc)
      .Input("X", "of rank 1 or more", AnyType())
      .Output("Out", "the parts", SameTypeAs("X"), Repeated())
      .Attr("sections", std::vector<std::int32_t>(), "the number of rows of each part", AtLeast(-1))
      .Attr("num", 0, "the number of equal parts; 0: use sections", AtLeast(0))
      .InferShape(InferSplitRows)
      .PartsAreRows({.whole = "X", .parts = "Out"})
      .KernelForAnyType<Cpu, SplitKernel<true>>()
      .NoGrad();
}

}  // namespace penstock
