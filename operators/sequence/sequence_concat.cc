// sequence_concat: concatenates several inputs sequence by sequence.
#include <cstring>
#include <string>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/grad_shapes.h"
#include "operators/common/lod.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Sequence s of Out is sequence s of X[0], followed by sequence s of X[1], ...

All inputs must have the same number of innermost sequences and the same outer LoD levels, which Out keeps.)";

Status InferSequenceConcat(InferContext& c) {
  Shape out = c.ShapeOf("X");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("X", 0));
  for (int i = 1; i < c.InputCount("X"); ++i) {
    const Shape& x = c.ShapeOf("X", i);
    if (x.rank() == 0 || !Compatible(x.RowWidth(), out.RowWidth())) {
      return c.Error("width of X[", i, "] (", x.RowWidth(), ", shape ", x, ") must equal that of X[0] (",
                     out.RowWidth(), ", shape ", out, ")");
    }
    out.Set(0, out[0] == kUnknownDim || x[0] == kUnknownDim ? kUnknownDim : out[0] + x[0]);
  }
  c.SetLodLevel("Out", c.Input("X").lod_level);
  return c.SetShape("Out", out);
}

// The inputs, with their sequences checked against each other.
class JoinedInputs {
 public:
  void Prepare(const KernelSetup& k) {
    xs_.resize(k.Inputs("X").size());
    lods_.resize(xs_.size());
    for (std::size_t i = 0; i < xs_.size(); ++i) xs_[i].Prepare(k, "X", static_cast<int>(i));
  }

  Status Find(KernelRun& k) {
    for (std::size_t i = 0; i < xs_.size(); ++i) {
      PENSTOCK_ASSIGN_OR_RETURN(lods_[i], xs_[i].Levels(k, 1));
      const LoD& first = *lods_[0];
      const LoD& lod = *lods_[i];
      if (lod.size() != first.size()) {
        return LodError(xs_[i].what(), " has ", lod.size(), " levels of sequences, X[0] has ", first.size());
      }
      if (lod.back().size() != first.back().size()) {
        return LodError(xs_[i].what(), " has ", lod.back().size() - 1, " sequences, X[0] has ",
                        first.back().size() - 1);
      }
      for (std::size_t l = 0; l + 1 < lod.size(); ++l) {
        if (lod[l] != first[l])
          return LodError(xs_[i].what(), ": level ", l, " of its sequences differs from that of X[0]");
      }
    }
    return OkStatus();
  }

  std::size_t size() const { return xs_.size(); }
  const Operand& operand(std::size_t i) const { return xs_[i].operand(); }
  const LoD& first() const { return *lods_[0]; }
  Offsets offsets(std::size_t i) const { return Offsets(lods_[i]->back()); }
  Dim rows() const {
    Dim rows = 0;
    for (std::size_t i = 0; i < xs_.size(); ++i) rows += offsets(i).total();
    return rows;
  }
  // Calls visit(i, offset of the rows in X[i], offset in Out, size), in bytes, in the order of Out.
  template <typename Visit>
  void EachPart(std::size_t row_bytes, Visit&& visit) const {
    std::size_t at = 0;
    for (Dim s = 0; s < offsets(0).count(); ++s) {
      for (std::size_t i = 0; i < xs_.size(); ++i) {
        const std::size_t bytes = static_cast<std::size_t>(offsets(i).length(s)) * row_bytes;
        if (bytes > 0) visit(i, static_cast<std::size_t>(offsets(i).begin(s)) * row_bytes, at, bytes);
        at += bytes;
      }
    }
  }

 private:
  std::vector<SequenceInput> xs_;
  std::vector<const LoD*> lods_;
};

std::size_t RowBytes(const TensorDesc& desc) {
  return static_cast<std::size_t>(desc.shape.RowWidth()) * SizeOf(desc.dtype);
}

class SequenceConcatKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    xs_.Prepare(k);
    row_bytes_ = RowBytes(k.Input("X"));
    return out_.Prepare(k, "Out", k.Input("X").dtype, k.Input("X").shape);
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(xs_.Find(k));
    Tensor& out = out_.Make(k, xs_.rows());
    const std::size_t inner = xs_.first().size() - 1;
    lod_.Start(inner + 1);
    for (std::size_t l = 0; l < inner; ++l) lod_.CopyLevel(l, xs_.first()[l]);
    for (Dim s = 0; s < xs_.offsets(0).count(); ++s) {
      Dim length = 0;
      for (std::size_t i = 0; i < xs_.size(); ++i) length += xs_.offsets(i).length(s);
      lod_.Add(inner, length);
    }
    lod_.Set(out);
    xs_.EachPart(row_bytes_, [&](std::size_t i, std::size_t from, std::size_t to, std::size_t bytes) {
      std::memcpy(out.raw() + to, k[xs_.operand(i)].raw() + from, bytes);
    });
    return OkStatus();
  }

 private:
  JoinedInputs xs_;
  RowsOutput out_;
  MadeLod lod_;
  std::size_t row_bytes_ = 0;
};

// Splits Out@GRAD into the gradients of the inputs; skips those that are not requested.
class SequenceConcatGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    xs_.Prepare(k);
    k.Bind(dout_);
    dout_name_ = StrCat(k.op().type(), ": Out@GRAD");
    width_ = k.Input("X").shape.RowWidth();
    row_bytes_ = RowBytes(k.Input("X"));
    const auto grads = k.Outputs("X@GRAD");
    dxs_.assign(grads.begin(), grads.end());
    dxs_.resize(xs_.size());
    if (k[dout_].dtype == k.Input("X").dtype) return OkStatus();
    return k.Error("element type of Out@GRAD (", DTypeName(k[dout_].dtype), ") must be that of X (",
                   DTypeName(k.Input("X").dtype), ")");
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(xs_.Find(k));
    PENSTOCK_RETURN_IF_ERROR(CheckRows(dout_name_, k[dout_], xs_.rows(), width_));
    const std::byte* const dout = k[dout_].raw();
    xs_.EachPart(row_bytes_, [&](std::size_t i, std::size_t to, std::size_t from, std::size_t bytes) {
      if (dxs_[i]) std::memcpy(k[dxs_[i]].raw() + to, dout + from, bytes);
    });
    return OkStatus();
  }

 private:
  JoinedInputs xs_;
  In<"Out@GRAD"> dout_;
  std::vector<Operand> dxs_;
  std::string dout_name_;
  Dim width_ = 1;
  std::size_t row_bytes_ = 0;
};

}  // namespace

void RegisterSequenceConcat(OpRegistry& ops) {
  OpDef& def = ops.Add("sequence_concat");
  def.Doc("Concatenates several inputs sequence by sequence.", kDoc)
      .Input("X", "rows in sequences, all of one width", Numbers(), Repeated())
      .Output("Out", "the concatenated sequences", SameTypeAs("X"))
      .InferShape(InferSequenceConcat)
      .KernelForAnyType<Cpu, SequenceConcatKernel>()
      .Grad({.reads = {"X"}, .yields = {"X"}});
  def.GradDef().InferShape(GradsWithLodUndeclared({"X"})).KernelForAnyType<Cpu, SequenceConcatGradKernel>();
}

}  // namespace penstock
