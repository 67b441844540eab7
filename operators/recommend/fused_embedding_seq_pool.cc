// fused_embedding_seq_pool: rows of a table, added up for each sequence of ids.
#include <algorithm>
#include <string>

#include "framework/op/op_registry.h"
#include "operators/common/fluid_attrs.h"
#include "operators/common/lod.h"
#include "operators/common/require_shape.h"
#include "operators/common/rows.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out[s] is the sum of W[Ids[i]] over the ids of sequence s, but those that are padding_idx (-1: there is
none). An id outside of the table is an error. With is_sparse, W's gradient is selected rows, in the order
of the ids and as often as they stand there.)";

Status InferPool(InferContext& c) {
  const Shape &w = c.ShapeOf("W"), &ids = c.ShapeOf("Ids");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("W", 2));
  if (ids.rank() != 2 || !Compatible(ids[1], 1))
    return c.Error("Ids (", ids, ") must be [n, 1], in sequences");
  return c.SetShape("Out", {kUnknownDim, w[1]});
}

Status InferPoolGrad(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("W", "W@GRAD"));
  c.SetKind("W@GRAD", c.Attr<bool>("is_sparse") ? VarKind::kSelectedRows : VarKind::kTensor);
  c.SetLodLevel("W@GRAD", 0);
  return OkStatus();
}

// The ids in their sequences, checked.
class PooledIds {
 public:
  Status Prepare(const KernelSetup& k) {
    type_ = k.op().type();
    ids_.Prepare(k, "Ids");
    const Shape& w = k.Input("W").shape;
    if (w.rank() != 2) return k.Error("rank of W (", w, ") must be 2");
    if (ids_.operand().dtype != DType::kInt64) return k.Error("Ids must be i64");
    padding_ = k.Attr<std::int64_t>("padding_idx");
    height_ = w[0];
    width_ = w[1];
    return OkStatus();
  }
  // The sequences; an error if an id is outside of the table.
  Result<Offsets> Sequences(KernelRun& k) const {
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets sequences, ids_.Innermost(k));
    const Tensor& ids = k[ids_.operand()];
    if (ids.count() != sequences.total())
      return LodError(ids_.what(), " must hold one id for each of its rows");
    for (const std::int64_t id : ids.Span<std::int64_t>()) {
      if (Counts(id) && (id < 0 || id >= height_))
        return InvalidArgument("E-op-index", type_, ": id ", id, " is outside the table of ", height_,
                               " rows");
    }
    return sequences;
  }
  bool Counts(std::int64_t id) const { return padding_ == -1 || id != padding_; }
  const std::int64_t* ids(KernelRun& k) const { return k[ids_.operand()].Data<std::int64_t>(); }
  Dim height() const { return height_; }
  Dim width() const { return width_; }

 private:
  std::string type_;
  SequenceInput ids_;
  std::int64_t padding_ = -1;
  Dim height_ = 0, width_ = 0;
};

template <typename Device, typename T>
class EmbeddingPoolKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    w_ = k.Input("W");
    PENSTOCK_RETURN_IF_ERROR(ids_.Prepare(k));
    return out_.Prepare(k, "Out", DTypeOfT<T>::kValue, {0, ids_.width()});
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets sequences, ids_.Sequences(k));
    Tensor& made = out_.Make(k, sequences.count());
    std::ranges::fill(made.Span<T>(), T{0});
    const std::int64_t* const ids = ids_.ids(k);
    const T* const w = k[w_].template Data<T>();
    T* out = made.Data<T>();
    for (Dim s = 0; s < sequences.count(); ++s, out += ids_.width()) {
      for (Dim i = sequences.begin(s); i < sequences.end(s); ++i) {
        if (!ids_.Counts(ids[i])) continue;
        const T* const row = w + ids[i] * ids_.width();
        for (Dim j = 0; j < ids_.width(); ++j) out[j] += row[j];
      }
    }
    return OkStatus();
  }

 private:
  Operand w_;
  PooledIds ids_;
  RowsOutput out_;
};

template <typename Device, typename T>
class EmbeddingPoolGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    dout_ = k.Input("Out@GRAD");
    dw_ = k.Output("W@GRAD");
    return ids_.Prepare(k);
  }
  Status Run(KernelRun& k) override {
    if (!dw_) return OkStatus();
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets sequences, ids_.Sequences(k));
    if (k[dout_].count() != sequences.count() * ids_.width())
      return LodError("fused_embedding_seq_pool_grad: Out@GRAD must have a row for each of ",
                      sequences.count(), " sequences");
    if (dw_.kind == VarKind::kSelectedRows) {
      List(k, sequences, k.Var(dw_).As<SelectedRows>());
    } else {
      std::ranges::fill(k[dw_].template Span<T>(), T{0});
      T* const dw = k[dw_].template Data<T>();
      ForEachId(k, sequences, [&](std::int64_t id, const T* dout) {
        for (Dim j = 0; j < ids_.width(); ++j) dw[id * ids_.width() + j] += dout[j];
      });
    }
    return OkStatus();
  }

 private:
  template <typename Visit>
  void ForEachId(KernelRun& k, const Offsets& sequences, Visit visit) const {
    const std::int64_t* const ids = ids_.ids(k);
    const T* dout = k[dout_].template Data<T>();
    for (Dim s = 0; s < sequences.count(); ++s, dout += ids_.width()) {
      for (Dim i = sequences.begin(s); i < sequences.end(s); ++i) {
        if (ids_.Counts(ids[i])) visit(ids[i], dout);
      }
    }
  }
  void List(KernelRun& k, const Offsets& sequences, SelectedRows& dw) {
    dw.height = ids_.height();
    dw.rows.clear();
    ForEachId(k, sequences, [&](std::int64_t id, const T*) { dw.rows.push_back(id); });
    listed_.Set(0, static_cast<Dim>(dw.rows.size()));
    listed_.Set(1, ids_.width());
    dw.ResetValue(DTypeOfT<T>::kValue, listed_);
    T* to = dw.value.Data<T>();
    ForEachId(k, sequences, [&](std::int64_t, const T* dout) { to = std::copy_n(dout, ids_.width(), to); });
  }
  Operand dout_, dw_;
  PooledIds ids_;
  Shape listed_{0, 0};  // of the rows that a sparse gradient lists
};

}  // namespace

void RegisterFusedEmbeddingSeqPool(OpRegistry& ops) {
  OpDef& def = ops.Add("fused_embedding_seq_pool");
  def.Doc("Rows of a table, added up for each sequence of ids.", kDoc)
      .Input("W", "the table: rows, width", Floats())
      .Input("Ids", "[n, 1]: row numbers, in sequences", Only(DType::kInt64))
      .Output("Out", "[sequences, width]", SameTypeAs("W"), Apart())
      .Attr("combiner", "sum", "what is made of the rows of a sequence", OneOf({"sum"}))
      .Attr("padding_idx", std::int64_t{-1}, "the id that stands for no row; -1: none")
      .Attr("grad_inplace", false, kNoEffect)
      .Attr("is_sparse", false, "whether W's gradient is selected rows")
      .InferShape(InferPool)
      .KernelTypeFrom("W")
      .Kernel<Cpu, EmbeddingPoolKernel, float, double>()
      .Grad({.reads = {"W", "Ids"}, .yields = {"W"}, .sparse = {"W"}, .apart = {"W"}})
      .GradKernel<Cpu, EmbeddingPoolGradKernel, float, double>();
  def.GradDef().KernelTypeFrom("Out@GRAD").InferShape(InferPoolGrad);
}

}  // namespace penstock
