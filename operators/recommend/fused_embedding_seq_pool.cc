// fused_embedding_seq_pool: looks up rows of a table and sums them over each sequence of ids.
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
Out[s] is the sum of W[Ids[i]] over the ids of sequence s, except those equal to padding_idx (-1: no padding).
If Ids has several columns, each has a separate sum, and Out[s] concatenates these sums. An id outside the
table is an error. With is_sparse, the gradient of W is selected rows in the order of the ids, including
duplicates.)";

Status InferPool(InferContext& c) {
  const Shape &w = c.ShapeOf("W"), &ids = c.ShapeOf("Ids");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("W", 2));
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("Ids", 0));
  const Dim columns = ids.RowWidth();
  return c.SetShape(
      "Out", {kUnknownDim, columns == kUnknownDim || w[1] == kUnknownDim ? kUnknownDim : columns * w[1]});
}

Status InferPoolGrad(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("W", "W@GRAD"));
  c.SetKind("W@GRAD", c.Attr<bool>("is_sparse") ? VarKind::kSelectedRows : VarKind::kTensor);
  c.SetLodLevel("W@GRAD", 0);
  return OkStatus();
}

// The checked ids and their sequences.
class PooledIds {
 public:
  Status Prepare(const KernelSetup& k) {
    type_ = k.op().type();
    ids_.Prepare(k, "Ids");
    const Shape& w = k.Input("W").shape;
    if (w.rank() != 2) return k.Error("rank of W (", w, ") must be 2");
    if (k.Input("Ids").dtype != DType::kInt64) return k.Error("Ids must be i64");
    if (k.Input("Ids").shape.rank() == 0) return k.Error("Ids must have rows");
    columns_ = k.Input("Ids").shape.RowWidth();
    padding_ = k.Attr<std::int64_t>("padding_idx");
    height_ = w[0];
    width_ = w[1];
    return OkStatus();
  }
  // Returns the sequences; an error if an id is outside the table.
  Result<Offsets> Sequences(KernelRun& k) const {
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets sequences, ids_.Innermost(k));
    const Tensor& ids = k[ids_.operand()];
    if (ids.count() != sequences.total() * columns_)
      return LodError(ids_.what(), " must hold ", columns_, " ids for each of its rows");
    for (const std::int64_t id : ids.Span<std::int64_t>()) {
      if (Counts(id) && (id < 0 || id >= height_))
        return InvalidArgument("E-op-index", type_, ": id ", id, " is outside the table of ", height_,
                               " rows");
    }
    return sequences;
  }
  // Calls visit(id, first element of its sum in Out) for each id that is not padding, in order.
  template <typename Visit>
  void ForEach(KernelRun& k, const Offsets& sequences, Visit visit) const {
    const std::int64_t* const ids = k[ids_.operand()].Data<std::int64_t>();
    for (Dim s = 0; s < sequences.count(); ++s) {
      for (Dim i = sequences.begin(s) * columns_; i < sequences.end(s) * columns_; ++i) {
        if (Counts(ids[i])) visit(ids[i], (s * columns_ + i % columns_) * width_);
      }
    }
  }
  Dim height() const { return height_; }
  Dim width() const { return width_; }  // of a row of the table
  Dim out_width() const { return columns_ * width_; }

 private:
  bool Counts(std::int64_t id) const { return padding_ == -1 || id != padding_; }

  std::string type_;
  SequenceInput ids_;
  std::int64_t padding_ = -1;
  Dim columns_ = 1, height_ = 0, width_ = 0;
};

template <typename Device, typename T>
class EmbeddingPoolKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(w_);
    PENSTOCK_RETURN_IF_ERROR(ids_.Prepare(k));
    return out_.Prepare(k, "Out", DTypeOfT<T>::kValue, {0, ids_.out_width()});
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets sequences, ids_.Sequences(k));
    Tensor& made = out_.Make(k, sequences.count());
    std::ranges::fill(made.Span<T>(), T{0});
    const T* const w = k[w_].template Data<T>();
    T* const out = made.Data<T>();
    const Dim width = ids_.width();
    ids_.ForEach(k, sequences, [=](std::int64_t id, Dim at) {
      for (Dim j = 0; j < width; ++j) out[at + j] += w[id * width + j];
    });
    return OkStatus();
  }

 private:
  In<"W"> w_;
  PooledIds ids_;
  RowsOutput out_;
};

template <typename Device, typename T>
class EmbeddingPoolGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(dout_);
    dw_ = k.Output("W@GRAD");
    return ids_.Prepare(k);
  }
  Status Run(KernelRun& k) override {
    if (!dw_) return OkStatus();
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets sequences, ids_.Sequences(k));
    if (k[dout_].count() != sequences.count() * ids_.out_width())
      return LodError("fused_embedding_seq_pool_grad: Out@GRAD must have a row for each of ",
                      sequences.count(), " sequences");
    if (dw_.kind == VarKind::kSelectedRows) {
      List(k, sequences, k.Var(dw_).As<SelectedRows>());
    } else {
      std::ranges::fill(k[dw_].template Span<T>(), T{0});
      T* const dw = k[dw_].template Data<T>();
      const T* const dout = k[dout_].template Data<T>();
      const Dim width = ids_.width();
      ids_.ForEach(k, sequences, [=](std::int64_t id, Dim at) {
        for (Dim j = 0; j < width; ++j) dw[id * width + j] += dout[at + j];
      });
    }
    return OkStatus();
  }

 private:
  void List(KernelRun& k, const Offsets& sequences, SelectedRows& dw) {
    dw.height = ids_.height();
    dw.rows.clear();
    ids_.ForEach(k, sequences, [&](std::int64_t id, Dim) { dw.rows.push_back(id); });
    listed_.Set(0, static_cast<Dim>(dw.rows.size()));
    listed_.Set(1, ids_.width());
    dw.ResetValue(DTypeOfT<T>::kValue, listed_);
    const T* const dout = k[dout_].template Data<T>();
    T* to = dw.value.Data<T>();
    ids_.ForEach(k, sequences, [&](std::int64_t, Dim at) { to = std::copy_n(dout + at, ids_.width(), to); });
  }
  In<"Out@GRAD"> dout_;
  TypedOperand dw_;
  PooledIds ids_;
  Shape listed_{0, 0};  // the shape of the rows of a sparse gradient
};

}  // namespace

void RegisterFusedEmbeddingSeqPool(OpRegistry& ops) {
  OpDef& def = ops.Add("fused_embedding_seq_pool");
  def.Doc("Looks up rows of a table and sums them over each sequence of ids.", kDoc)
      .Input("W", "the table, [rows, width]", Floats())
      .Input("Ids", "[n, columns]: row numbers, in sequences", Only(DType::kInt64))
      .Output("Out", "[sequences, columns * width]", SameTypeAs("W"), Apart())
      .Attr("combiner", "sum", "how the rows of a sequence are combined", OneOf({"sum"}))
      .Attr("padding_idx", std::int64_t{-1}, "the id that yields zeros; -1: none")
      .Attr("grad_inplace", false, kNoEffect)
      .Attr("is_sparse", false, "whether the gradient of W is selected rows")
      .InferShape(InferPool)
      .KernelTypeFrom("W")
      .Kernel<Cpu, EmbeddingPoolKernel, float, double>()
      .Grad({.reads = {"W", "Ids"}, .yields = {"W"}, .sparse = {"W"}, .apart = {"W"}})
      .GradKernel<Cpu, EmbeddingPoolGradKernel, float, double>();
  def.GradDef().KernelTypeFrom("Out@GRAD").InferShape(InferPoolGrad);
}

}  // namespace penstock
