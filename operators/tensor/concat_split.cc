// concat, split, split_byref: tensors joined end to end along one extent, and cut along it.
#include <cstring>
#include <numeric>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/fluid_attrs.h"

namespace penstock {
namespace {

constexpr char kConcatDoc[] = R"(
Out holds X[0], X[1], ... end to end along extent `axis` (negative: from the last one); the other extents
are equal.)";

constexpr char kSplitDoc[] = R"(
Out[i] is the i-th part of X along extent `axis` (negative: from the last one): `sections` says how many
each part has (one may be -1: the rest), or `num` cuts X into that many equal parts.)";

constexpr char kSplitRowsDoc[] = R"(
Out[i] is the i-th part of X's rows. `sections` says how many rows each part has, or `num` cuts X into that
many equal parts. The parts are copies: they are sent while later steps already write X.)";

Status ResolveAxis(const InferContext& c, int rank, int& axis) {
  if (axis < 0) axis += rank;
  if (axis >= 0 && axis < rank) return OkStatus();
  return c.Error("axis (", c.Attr<int>("axis"), ") must be within the rank of X (", rank, ")");
}

// A whole tensor whose parts lie along one extent: for each of `outer` positions, each part has `bytes[i]` in
// a row.
class Strips {
 public:
  void Prepare(const Shape& shape, int axis, std::size_t element_bytes) {
    outer_ = shape.Product(0, axis);
    inner_bytes_ = static_cast<std::size_t>(shape.Product(axis + 1, shape.rank())) * element_bytes;
  }
  void AddPart(const Operand& part, Dim extent) {
    parts_.push_back({part, static_cast<std::size_t>(extent) * inner_bytes_});
    whole_bytes_ += parts_.back().bytes;
  }
  void Join(KernelRun& k, Tensor& whole) const {
    std::size_t offset = 0;
    for (const Part& part : parts_) {
      const std::byte* const from = k[part.operand].raw();
      for (Dim o = 0; part.bytes > 0 && o < outer_; ++o) {
        std::memcpy(whole.raw() + offset + Times(o, whole_bytes_), from + Times(o, part.bytes), part.bytes);
      }
      offset += part.bytes;
    }
  }
  void Cut(KernelRun& k, const Tensor& whole) const {
    std::size_t offset = 0;
    for (const Part& part : parts_) {
      for (Dim o = 0; part.operand && part.bytes > 0 && o < outer_; ++o) {
        std::memcpy(k[part.operand].raw() + Times(o, part.bytes),
                    whole.raw() + offset + Times(o, whole_bytes_), part.bytes);
      }
      offset += part.bytes;
    }
  }

 private:
  struct Part {
    Operand operand;
    std::size_t bytes;
  };
  static std::size_t Times(Dim o, std::size_t bytes) { return static_cast<std::size_t>(o) * bytes; }
  Dim outer_ = 1;
  std::size_t inner_bytes_ = 0, whole_bytes_ = 0;
  std::vector<Part> parts_;
};

int PositiveAxis(int axis, int rank) { return axis < 0 ? axis + rank : axis; }

Status InferConcat(InferContext& c) {
  if (c.HasInput("AxisTensor")) {
    return Unimplemented("E-op-unimplemented",
                         "concat: input AxisTensor is not supported; give attribute axis");
  }
  Shape out = c.ShapeOf("X");
  int axis = c.Attr<int>("axis");
  PENSTOCK_RETURN_IF_ERROR(ResolveAxis(c, out.rank(), axis));
  for (int i = 1; i < c.InputCount("X"); ++i) {
    const Shape& next = c.ShapeOf("X", i);
    if (next.rank() != out.rank()) {
      return c.Error("rank of X[", i, "] (", next.rank(), ") must equal that of X[0] (", out.rank(), ")");
    }
    for (int d = 0; d < out.rank(); ++d) {
      if (d == axis) {
        out.Set(d, out[d] == kUnknownDim || next[d] == kUnknownDim ? kUnknownDim : out[d] + next[d]);
      } else if (!Compatible(out[d], next[d])) {
        return c.Error("extent ", d, " of X[", i, "] (", next[d], ") must equal that of X[0] (", out[d], ")");
      } else if (out[d] == kUnknownDim) {
        out.Set(d, next[d]);
      }
    }
  }
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("X", "Out"));
  return c.SetShape("Out", out);
}

class ConcatKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    out_ = k.Output("Out");
    const int axis = PositiveAxis(k.Attr<int>("axis"), out_.shape.rank());
    strips_.Prepare(out_.shape, axis, SizeOf(out_.dtype));
    for (const Operand& x : k.Inputs("X")) {
      if (x.dtype != out_.dtype)
        return k.Error("element types of X differ (", DTypeName(x.dtype), ", ", DTypeName(out_.dtype), ")");
      strips_.AddPart(x, x.shape[axis]);
    }
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    strips_.Join(k, k[out_]);
    return OkStatus();
  }

 private:
  Operand out_;
  Strips strips_;
};

// Cuts Out@GRAD as the arguments were joined; a part that nobody reads is passed over.
class ConcatGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    dout_ = k.Input("Out@GRAD");
    const int rank = dout_.shape.rank();
    const int axis = PositiveAxis(k.Attr<int>("axis"), rank);
    if (axis < 0 || axis >= rank)
      return k.Error("axis (", axis, ") must be within the rank of Out@GRAD (", rank, ")");
    strips_.Prepare(dout_.shape, axis, SizeOf(dout_.dtype));
    const auto xs = k.Inputs("X");
    const auto grads = k.Outputs("X@GRAD");
    Dim along = 0;
    for (const Operand& x : xs) {
      Shape others = dout_.shape;
      others.Set(axis, x.shape.rank() == rank ? x.shape[axis] : 0);
      if (x.shape != others) return k.Error("X (", x.shape, ") is no part of Out@GRAD (", dout_.shape, ")");
      along += x.shape[axis];
    }
    if (along != dout_.shape[axis])
      return k.Error("the parts of X add up to ", along, ", not to ", dout_.shape[axis]);
    for (std::size_t i = 0; i < xs.size(); ++i) {
      strips_.AddPart(i < grads.size() ? grads[i] : Operand(), xs[i].shape[axis]);
    }
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    strips_.Cut(k, k[dout_]);
    return OkStatus();
  }

 private:
  Operand dout_;
  Strips strips_;
};

// The extents of the parts along the cut.
Status PartExtents(const InferContext& c, Dim whole, std::vector<Dim>& parts) {
  const auto sections = c.Attr<std::vector<std::int32_t>>("sections");
  const int num = c.Attr<int>("num");
  const auto count = c.op().Output("Out").size();
  if (sections.empty()) {
    if (num <= 0 || static_cast<std::size_t>(num) != count) {
      return c.Error("num (", num, ") must equal the number of outputs (", count,
                     ") where sections is empty");
    }
    if (whole != kUnknownDim && whole % num != 0)
      return c.Error("extent ", whole, " cannot be cut into ", num, " equal parts");
    parts.assign(count, whole == kUnknownDim ? kUnknownDim : whole / num);
    return OkStatus();
  }
  if (sections.size() != count)
    return c.Error("sections name ", sections.size(), " parts for ", count, " outputs");
  parts.assign(sections.begin(), sections.end());
  const Dim known = std::accumulate(parts.begin(), parts.end(), Dim{0},
                                    [](Dim sum, Dim p) { return sum + (p < 0 ? 0 : p); });
  const auto open = std::count(parts.begin(), parts.end(), kUnknownDim);
  if (whole == kUnknownDim) return OkStatus();
  if (open > 1 || known > whole || (open == 0 && known != whole)) {
    return c.Error("sections ", AttrToString(sections), " must add up to ", whole,
                   open > 0 ? ", with -1 at most once" : "");
  }
  for (Dim& part : parts) part = part == kUnknownDim ? whole - known : part;
  return OkStatus();
}

Status InferParts(InferContext& c, int axis) {
  const Shape& x = c.ShapeOf("X");
  PENSTOCK_RETURN_IF_ERROR(ResolveAxis(c, x.rank(), axis));
  std::vector<Dim> parts;
  PENSTOCK_RETURN_IF_ERROR(PartExtents(c, x[axis], parts));
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
  if (c.HasInput("AxisTensor") || c.HasInput("SectionsTensorList")) {
    return Unimplemented("E-op-unimplemented",
                         "split: axis and sections from tensors are not supported; give attributes");
  }
  return InferParts(c, c.Attr<int>("axis"));
}

Status InferSplitRows(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("X", 0));
  return InferParts(c, 0);
}

template <bool kRows>
class SplitKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    x_ = k.Input("X");
    if (x_.kind != VarKind::kTensor) {
      return Unimplemented("E-op-rows", k.op().type(), ": X (", x_.name, ") must be a dense tensor");
    }
    const int axis = kRows ? 0 : PositiveAxis(k.Attr<int>("axis"), x_.shape.rank());
    strips_.Prepare(x_.shape, axis, SizeOf(x_.dtype));
    for (const Operand& out : k.Outputs("Out")) strips_.AddPart(out, out.shape[axis]);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    strips_.Cut(k, k[x_]);
    return OkStatus();
  }

 private:
  Operand x_;
  Strips strips_;
};

// The parts' gradients joined, by an op that keeps the forward op's attributes, as Fluid's does.
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
      .Doc("Its arguments end to end along one extent.", kConcatDoc)
      .Input("X", "tensors whose other extents are equal", AnyType(), Repeated())
      .Input("AxisTensor", "axis as a tensor", Only(DType::kInt32), Optional())
      .Output("Out", "the whole", SameTypeAs("X"))
      .Attr("use_mkldnn", false, kNoEffect)
      .Attr("axis", 0, "the extent along which they are joined")
      .Attr("use_quantizer", false, kNoEffect)
      .InferShape(InferConcat)
      .KernelForAnyType<Cpu, ConcatKernel>()
      .Grad({.reads = {"X", "AxisTensor"}, .yields = {"X"}})
      .GradDef()
      .KernelForAnyType<Cpu, ConcatGradKernel>();
  ops.Add("split")
      .Doc("The parts of X along one extent.", kSplitDoc)
      .Input("X", "any shape", AnyType())
      .Input("AxisTensor", "axis as a tensor", Only(DType::kInt32), Optional())
      .Input("SectionsTensorList", "sections as one tensor a part", Only(DType::kInt32),
             Optional() | Repeated())
      .Output("Out", "the parts", SameTypeAs("X"), Repeated())
      .Attr("sections", std::vector<std::int32_t>(), "how much of the extent each part has", AtLeast(-1))
      .Attr("num", 0, "into how many equal parts, where sections is empty", AtLeast(0))
      .Attr("axis", 0, "the extent that is cut")
      .InferShape(InferSplit)
      .KernelForAnyType<Cpu, SplitKernel<false>>()
      .GradMadeBy(SplitGrad);
  ops.Add("split_byref")
      .Doc("The parts of X's rows, as they are sent to several servers.", kSplitRowsDoc)
      .Input("X", "rank 1 or more", AnyType())
      .Output("Out", "the parts", SameTypeAs("X"), Repeated())
      .Attr("sections", std::vector<std::int32_t>(), "how many rows each part has", AtLeast(-1))
      .Attr("num", 0, "into how many equal parts, where sections is empty", AtLeast(0))
      .InferShape(InferSplitRows)
      .KernelForAnyType<Cpu, SplitKernel<true>>()
      .NoGrad();
}

}  // namespace penstock
