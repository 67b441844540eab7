// sequence_expand, sequence_expand_as: repeat sequences or rows to match the sequences of another input.
#include <algorithm>
#include <cstring>
#include <string>

#include "framework/op/op_registry.h"
#include "operators/common/grad_shapes.h"
#include "operators/common/lod.h"

namespace penstock {
namespace {

constexpr char kExpandDoc[] = R"(
Out repeats sequence i of X as many times as the length of sequence i in level `ref_level` (-1: the innermost)
of the LoD of Y.

If X has one LoD level, Out has one sequence for each copy. If X has none, each of its rows is repeated, and
Out has no level either. The gradient of X is the sum over its copies. The values of Y are not read.)";

constexpr char kExpandAsDoc[] = R"(
Out repeats row i of X as many times as sequence i of Y has rows, and has the LoD of Y.

Y has one LoD level, with as many sequences as X has rows. The gradient of X is the sum over its copies. The
values of Y are not read.)";

// The expansion: part i of X, rows [begin(i), begin(i) + length(i)), is copied `times(i)` times.
class Expansion {
 public:
  Expansion(const LoDLevel* x, const LoDLevel& times) : has_levels_(x != nullptr), times_(times) {
    if (has_levels_) x_ = Offsets(*x);
  }
  bool has_levels() const { return has_levels_; }
  Dim count() const { return times_.count(); }
  Dim begin(Dim i) const { return has_levels_ ? x_.begin(i) : i; }
  Dim length(Dim i) const { return has_levels_ ? x_.length(i) : 1; }
  Dim times(Dim i) const { return times_.length(i); }
  Dim rows() const {
    Dim rows = 0;
    for (Dim i = 0; i < count(); ++i) rows += length(i) * times(i);
    return rows;
  }

 private:
  bool has_levels_;
  Offsets x_, times_;
};

Status InferSequenceExpand(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("X", 0));
  if (c.Input("X").lod_level > 1)
    return c.Error("X has ", c.Input("X").lod_level, " levels of sequences; it may have one at most");
  c.SetLodLevel("Out", c.Input("X").lod_level);
  return c.SetShape("Out", c.ShapeOf("X").WithRows(kUnknownDim));
}

Status InferSequenceExpandAs(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("X", 0));
  c.ShareLod("Y", "Out");
  return c.SetShape("Out", c.ShapeOf("X").WithRows(kUnknownDim));
}

// Finds the expansion that the inputs of either op describe.
class ExpansionInputs {
 public:
  void Prepare(const KernelSetup& k) {
    as_ = k.op().type().starts_with("sequence_expand_as");
    ref_level_ = as_ ? -1 : k.Attr<std::int32_t>("ref_level");
    x_.Prepare(k, "X");
    y_.Prepare(k, "Y");
  }
  const SequenceInput& x() const { return x_; }
  const SequenceInput& y() const { return y_; }

  Result<Expansion> Find(KernelRun& k) const {
    PENSTOCK_ASSIGN_OR_RETURN(const LoD* const y, y_.Levels(k, 1, as_ ? 1 : 0));
    const int levels = static_cast<int>(y->size());
    const int ref = ref_level_ == -1 ? levels - 1 : ref_level_;
    if (ref < 0 || ref >= levels) {
      return LodError(y_.what(), " has ", levels, " levels of sequences; ref_level (", ref_level_,
                      ") must name one of them, or be -1");
    }
    const LoDLevel& times = (*y)[static_cast<std::size_t>(ref)];
    PENSTOCK_ASSIGN_OR_RETURN(const LoD* const x, LevelsOfX(k));
    const Expansion found(x == nullptr || x->empty() ? nullptr : &x->front(), times);
    const Shape& shape = k[x_.operand()].shape();
    const Dim rows = shape.rank() == 0 ? 0 : shape[0];
    const Dim parts = found.has_levels() ? Offsets(x->front()).count() : rows;
    if (parts == found.count()) return found;
    return LodError(x_.what(), " has ", parts, found.has_levels() ? " sequences" : " rows", "; Y has ",
                    found.count(), " sequences in level ", ref, "; the numbers must be equal");
  }

 private:
  // sequence_expand_as ignores the sequences of X.
  Result<const LoD*> LevelsOfX(KernelRun& k) const {
    if (as_) return static_cast<const LoD*>(nullptr);
    if (k[x_.operand()].lod().empty()) return static_cast<const LoD*>(nullptr);
    return x_.Levels(k, 1, 1);
  }

  bool as_ = false;
  int ref_level_ = -1;
  SequenceInput x_, y_;
};

class SequenceExpandKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    inputs_.Prepare(k);
    const Argument& x = k.Input("X");
    row_bytes_ = static_cast<std::size_t>(x.shape.RowWidth()) * SizeOf(x.dtype);
    return out_.Prepare(k, "Out", x.dtype, x.shape);
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const Expansion expansion, inputs_.Find(k));
    Tensor& out = out_.Make(k, expansion.rows());
    lod_.Start(expansion.has_levels() ? 1 : 0);
    const std::byte* const from = k[inputs_.x().operand()].raw();
    std::byte* to = out.raw();
    for (Dim i = 0; i < expansion.count(); ++i) {
      const std::size_t bytes = static_cast<std::size_t>(expansion.length(i)) * row_bytes_;
      for (Dim t = 0; t < expansion.times(i); ++t) {
        if (expansion.has_levels()) lod_.Add(0, expansion.length(i));
        if (bytes == 0) continue;
        std::memcpy(to, from + static_cast<std::size_t>(expansion.begin(i)) * row_bytes_, bytes);
        to += bytes;
      }
    }
    lod_.Set(out);
    return OkStatus();
  }

 private:
  ExpansionInputs inputs_;
  RowsOutput out_;
  MadeLod lod_;
  std::size_t row_bytes_ = 0;
};

template <typename Device, typename T>
class SequenceExpandGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    inputs_.Prepare(k);
    k.Bind(dout_, dx_);
    dout_name_ = StrCat(k.op().type(), ": Out@GRAD");
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    PENSTOCK_ASSIGN_OR_RETURN(const Expansion expansion, inputs_.Find(k));
    const Dim width = k[dx_].shape().RowWidth();
    PENSTOCK_RETURN_IF_ERROR(CheckRows(dout_name_, k[dout_], expansion.rows(), width));
    Tensor& dx = k[dx_];
    std::ranges::fill(dx.Span<T>(), T{0});
    const T* dout = k[dout_].template Data<T>();
    for (Dim i = 0; i < expansion.count(); ++i) {
      T* const to = dx.Data<T>() + expansion.begin(i) * width;
      const Dim count = expansion.length(i) * width;
      for (Dim t = 0; t < expansion.times(i); ++t) {
        for (Dim j = 0; j < count; ++j) to[j] += dout[j];
        dout += count;
      }
    }
    return OkStatus();
  }

 private:
  ExpansionInputs inputs_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  std::string dout_name_;
};

}  // namespace

void RegisterSequenceExpand(OpRegistry& ops) {
  ops.Add("sequence_expand")
      .Doc("Repeats sequences according to the sequences of another input.", kExpandDoc)
      .Input("X", "rows, in sequences of one level or without LoD", Numbers())
      .Input("Y", "its LoD gives the number of copies", AnyType())
      .Output("Out", "the copies", SameTypeAs("X"))
      .Attr("ref_level", -1, "the level of Y that gives the number of copies; -1: the innermost", AtLeast(-1))
      .InferShape(InferSequenceExpand)
      .KernelForAnyType<Cpu, SequenceExpandKernel>()
      .Grad({.reads = {"X", "Y"}, .yields = {"X"}, .apart = {"X"}})
      .GradKernel<Cpu, SequenceExpandGradKernel, float, double, std::int32_t, std::int64_t>()
      .GradDef()
      .InferShape(GradsWithLodUndeclared({"X"}));
  ops.Add("sequence_expand_as")
      .Doc("Repeats rows to the lengths of another input's sequences.", kExpandAsDoc)
      .Input("X", "one row for each sequence of Y", Numbers())
      .Input("Y", "its LoD gives the number of copies", AnyType())
      .Output("Out", "the copies", SameTypeAs("X"))
      .InferShape(InferSequenceExpandAs)
      .KernelForAnyType<Cpu, SequenceExpandKernel>()
      .Grad({.reads = {"X", "Y"}, .yields = {"X"}, .apart = {"X"}})
      .GradKernel<Cpu, SequenceExpandGradKernel, float, double, std::int32_t, std::int64_t>();
}

}  // namespace penstock
