// sequence_pad, sequence_unpad: pad sequences to one length, and the inverse.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/lod.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kPadDoc[] = R"(
Out[s, i] = X[begin(s) + i] for i < length(s), and PadValue for larger i;  Length[s] = length(s)

s is an innermost sequence of X; i is below padded_length or, if that is -1, below the length of the longest
sequence. PadValue is one element, or one step. If padded_length is -1 and the number of rows of X is unknown,
the declared shape of Out has one step, as in Fluid.)";

constexpr char kUnpadDoc[] = R"(
Sequence s of Out holds the first Length[s] steps of X[s].

X is [sequences, steps, ...]. Out is [sum of Length, ...], or [sum of Length, 1] if X has rank 2.)";

std::size_t StepBytes(const Shape& shape, int from, DType dtype) {
  return static_cast<std::size_t>(shape.Product(from, shape.rank())) * SizeOf(dtype);
}

Status InferSequencePad(InferContext& c) {
  const Shape& x = c.ShapeOf("X");
  const Shape& pad = c.ShapeOf("PadValue");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("X", 1));
  const Shape step = x.From(1);
  if (!Compatible(pad, Shape{1}) && !Compatible(pad, step))
    return c.Error("shape of PadValue (", pad, ") must be [1] or ", step, ", a step of X");
  if (c.Input("X").lod_level < 1) return c.Error("X must have a level of sequences");
  const Dim length = c.Attr<std::int32_t>("padded_length");
  const Dim longest = length != kUnknownDim ? length : x[0] == kUnknownDim ? 1 : kUnknownDim;
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("Length", {kUnknownDim}));
  c.SetLodLevel("Length", 0);
  c.SetLodLevel("Out", 0);
  return c.SetShape("Out", Concat({kUnknownDim, longest}, step));
}

class SequencePadKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    x_.Prepare(k, "X");
    k.Bind(pad_, out_);
    padded_length_ = k.Attr<std::int32_t>("padded_length");
    const Shape& x = k.Input("X").shape;
    step_bytes_ = StepBytes(x, 1, k.Input("X").dtype);
    pad_bytes_ = StepBytes(k[pad_].shape, 0, k[pad_].dtype);
    shape_ = Concat({0, 0}, x.From(1));
    if (pad_bytes_ == 0 || (pad_bytes_ != step_bytes_ && pad_bytes_ != SizeOf(k[pad_].dtype))) {
      return k.Error("shape of PadValue (", k[pad_].shape, ") must be [1] or a step of X (", x, ")");
    }
    return length_.Prepare(k, "Length", DType::kInt64, {0});
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets x, x_.Innermost(k));
    const Dim longest = x.longest();
    const Dim length = padded_length_ == kUnknownDim ? longest : padded_length_;
    if (length < longest) {
      return LodError(x_.what(), ": its longest sequence has ", longest, " steps; padded_length is ",
                      padded_length_, ", and must be at least that, or -1");
    }
    shape_.Set(0, x.count());
    shape_.Set(1, length);
    Tensor& out = k[out_];
    out.Reset(k[x_.operand()].dtype(), shape_);
    Copy(k, x, length, out.raw());
    if (!length_) return OkStatus();
    auto* const lengths = length_.Make(k, x.count()).Data<std::int64_t>();
    for (Dim s = 0; s < x.count(); ++s) lengths[s] = x.length(s);
    return OkStatus();
  }

 private:
  void Copy(KernelRun& k, const Offsets& x, Dim length, std::byte* out) const {
    if (step_bytes_ == 0) return;
    const std::byte* const from = k[x_.operand()].raw();
    const std::byte* const pad = k[pad_].raw();
    for (Dim s = 0; s < x.count(); ++s) {
      const std::size_t bytes = static_cast<std::size_t>(x.length(s)) * step_bytes_;
      const std::size_t rest = static_cast<std::size_t>(length - x.length(s)) * step_bytes_;
      if (bytes > 0) std::memcpy(out, from + static_cast<std::size_t>(x.begin(s)) * step_bytes_, bytes);
      out += bytes;
      for (std::size_t at = 0; at < rest; at += pad_bytes_) std::memcpy(out + at, pad, pad_bytes_);
      out += rest;
    }
  }

  SequenceInput x_;
  In<"PadValue"> pad_;
  Out<"Out"> out_;
  RowsOutput length_;
  Shape shape_;
  std::int32_t padded_length_ = -1;
  std::size_t step_bytes_ = 0, pad_bytes_ = 0;
};

class SequencePadGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    x_.Prepare(k, "X");
    k.Bind(dout_, dx_);
    what_ = StrCat(k.op().type(), ": Out@GRAD");
    const Argument& x = k.Input("X");
    step_bytes_ = StepBytes(x.shape, 1, x.dtype);
    const Shape& dout = k[dout_].shape;
    if (dout.rank() >= 2 && k[dout_].dtype == x.dtype && dout.Product(2, dout.rank()) == x.shape.RowWidth())
      return OkStatus();
    return k.Error("Out@GRAD (", dout, ") must be [sequences, steps] of steps of X (", x.shape, ")");
  }

  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets x, x_.Innermost(k));
    const Dim length = k[dout_].shape()[1];
    if (k[dout_].shape()[0] != x.count() || length < x.longest()) {
      return LodError(what_, " (", k[dout_].shape(), ") does not hold X's ", x.count(),
                      " sequences of up to ", x.longest(), " steps");
    }
    const std::byte* from = k[dout_].raw();
    std::byte* to = k[dx_].raw();
    for (Dim s = 0; s < x.count(); ++s) {
      const std::size_t bytes = static_cast<std::size_t>(x.length(s)) * step_bytes_;
      if (bytes > 0) std::memcpy(to, from, bytes);
      to += bytes;
      from += static_cast<std::size_t>(length) * step_bytes_;
    }
    return OkStatus();
  }

 private:
  SequenceInput x_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  std::string what_;
  std::size_t step_bytes_ = 0;
};

Status InferSequenceUnpad(InferContext& c) {
  const Shape& x = c.ShapeOf("X");
  const Shape& length = c.ShapeOf("Length");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("X", 1));
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("Length", 1));
  if (!Compatible(x[0], length[0])) {
    return c.Error("Length (", length, ") must have one element for each of X's ", x[0], " sequences");
  }
  c.SetLodLevel("Out", 1);
  return c.SetShape("Out", x.rank() == 2 ? Shape{kUnknownDim, 1} : x.From(1).WithRows(kUnknownDim));
}

class SequenceUnpadKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, length_);
    what_ = StrCat(k.op().type(), ": Length");
    step_bytes_ = StepBytes(k[x_].shape, 2, k[x_].dtype);
    return out_.Prepare(k, "Out", k[x_].dtype, k[x_].shape.rank() == 2 ? Shape{0, 1} : k[x_].shape.From(1));
  }

  Status Run(KernelRun& k) override {
    const auto lengths = k[length_].Span<std::int64_t>();
    lod_.Start(1);
    Dim rows = 0;
    for (std::size_t s = 0; s < lengths.size(); ++s) {
      if (lengths[s] < 0 || lengths[s] > k[x_].shape()[1]) {
        return InvalidArgument("E-op-index", what_, ": sequence ", s, " has length ", lengths[s],
                               "; it must be in [0, ", k[x_].shape()[1], "], the steps of X");
      }
      lod_.Add(0, lengths[s]);
      rows += lengths[s];
    }
    Tensor& out = out_.Make(k, rows);
    lod_.Set(out);
    const std::byte* from = k[x_].raw();
    std::byte* to = out.raw();
    for (const std::int64_t length : lengths) {
      const std::size_t bytes = static_cast<std::size_t>(length) * step_bytes_;
      if (bytes > 0) std::memcpy(to, from, bytes);
      to += bytes;
      from += static_cast<std::size_t>(k[x_].shape()[1]) * step_bytes_;
    }
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Length"> length_;
  RowsOutput out_;
  MadeLod lod_;
  std::string what_;
  std::size_t step_bytes_ = 0;
};

// Out@GRAD gives the lengths of the sequences, because Fluid's op has no slot for Length.
class SequenceUnpadGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    dout_.Prepare(k, "Out@GRAD");
    k.Bind(dx_);
    const Argument& x = k.Input("X");
    padded_ = x.shape;
    if (padded_.rank() < 2) return k.Error("rank of X (", padded_, ") must be above 1");
    step_bytes_ = StepBytes(padded_, 2, x.dtype);
    if (k.Input("Out@GRAD").dtype == x.dtype) return OkStatus();
    return k.Error("element type of Out@GRAD (", DTypeName(k.Input("Out@GRAD").dtype),
                   ") must be that of X (", DTypeName(x.dtype), ")");
  }

  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets dout, dout_.Innermost(k));
    PENSTOCK_RETURN_IF_ERROR(
        CheckRows(dout_.what(), k[dout_.operand()], dout.total(), padded_.Product(2, padded_.rank())));
    if (dout.count() != padded_[0] || dout.longest() > padded_[1]) {
      return LodError(dout_.what(), " has ", dout.count(), " sequences of up to ", dout.longest(),
                      " steps, X (", padded_, ") has ", padded_[0], " of ", padded_[1]);
    }
    const std::byte* from = k[dout_.operand()].raw();
    std::byte* to = k[dx_].raw();
    for (Dim s = 0; s < dout.count(); ++s) {
      const std::size_t bytes = static_cast<std::size_t>(dout.length(s)) * step_bytes_;
      const std::size_t rest = static_cast<std::size_t>(padded_[1] - dout.length(s)) * step_bytes_;
      if (bytes > 0) std::memcpy(to, from, bytes);
      if (rest > 0) std::memset(to + bytes, 0, rest);
      from += bytes;
      to += bytes + rest;
    }
    return OkStatus();
  }

 private:
  SequenceInput dout_;
  Out<"X@GRAD"> dx_;
  Shape padded_;
  std::size_t step_bytes_ = 0;
};

void AddSequencePad(OpRegistry& ops) {
  OpDef& def = ops.Add("sequence_pad");
  def.Doc("Pads sequences to one length.", kPadDoc)
      .Input("X", "steps in sequences", Numbers())
      .Input("PadValue", "the padding: one element, or one step", SameTypeAs("X"))
      .Output("Out", "[sequences, padded length, ...]", SameTypeAs("X"), Apart())
      .Output("Length", "the number of steps of each sequence", Only(DType::kInt64), Optional())
      .Attr("padded_length", -1, "the number of steps of Out; -1: that of the longest sequence", AtLeast(-1))
      .InferShape(InferSequencePad)
      .KernelForAnyType<Cpu, SequencePadKernel>()
      .Grad({.reads = {"X"}, .yields = {"X"}, .of = {"Out"}});
  def.GradDef().KernelForAnyType<Cpu, SequencePadGradKernel>();
}

void AddSequenceUnpad(OpRegistry& ops) {
  OpDef& def = ops.Add("sequence_unpad");
  def.Doc("Removes the padding from sequences.", kUnpadDoc)
      .Input("X", "[sequences, padded length, ...]", Numbers())
      .Input("Length", "the number of steps of each sequence", Only(DType::kInt64))
      .Output("Out", "the steps in sequences", SameTypeAs("X"))
      .InferShape(InferSequenceUnpad)
      .KernelForAnyType<Cpu, SequenceUnpadKernel>()
      .Grad({.reads = {"X"}, .yields = {"X"}});
  def.GradDef().KernelForAnyType<Cpu, SequenceUnpadGradKernel>();
}

}  // namespace

void RegisterSequencePad(OpRegistry& ops) {
  AddSequencePad(ops);
  AddSequenceUnpad(ops);
}

}  // namespace penstock
