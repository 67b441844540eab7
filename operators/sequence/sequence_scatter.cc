// sequence_scatter: adds updates to the elements of each row whose indices a sequence lists.
#include <algorithm>
#include <string>

#include "framework/op/op_registry.h"
#include "operators/common/grad_shapes.h"
#include "operators/common/lod.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out = X;  Out[s, Ids[i]] += Updates[i] for each i of sequence s

Ids and Updates have the same number of elements and one LoD level, with as many sequences as X has rows. An
index that occurs twice receives both updates; an index outside the row is an error. The gradients are
dX = dOut and dUpdates[i] = dOut[s, Ids[i]].)";

Status InferSequenceScatter(InferContext& c) {
  const Shape& ids = c.ShapeOf("Ids");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("X", 2));
  for (const char* slot : {"Ids", "Updates"}) {
    const Shape& shape = c.ShapeOf(slot);
    if (shape.rank() == 0 || !Compatible(shape.RowWidth(), 1))
      return c.Error("a row of ", slot, " (", shape, ") must have one element");
  }
  if (!Compatible(ids[0], c.ShapeOf("Updates")[0]))
    return c.Error("Updates (", c.ShapeOf("Updates"), ") must have the ", ids[0], " rows of Ids");
  return c.ShareAll("X", "Out");
}

// Calls visit(position in X, i) for each element of Ids, after checking it.
class ScatterIds {
 public:
  // The width of X is that of the matrix in `slot`.
  Status Prepare(const KernelSetup& k, std::string_view slot) {
    ids_.Prepare(k, "Ids");
    matrix_ = k.Input(slot).shape;
    const DType type = k.Input("Ids").dtype;
    if (type == DType::kInt64 || type == DType::kInt32) return OkStatus();
    return k.Error("element type of Ids (", DTypeName(type), ") must be i32 or i64");
  }

  template <typename Visit>
  Status Each(KernelRun& k, Visit&& visit) const {
    PENSTOCK_ASSIGN_OR_RETURN(const LoD* const lod, ids_.Levels(k, 1, 1));
    const Offsets sequences(lod->front());
    if (sequences.count() != matrix_[0]) {
      return LodError(ids_.what(), " has ", sequences.count(), " sequences; X has ", matrix_[0],
                      " rows; the numbers must be equal");
    }
    const Dim width = matrix_[1];
    const Tensor& tensor = k[ids_.operand()];
    for (Dim s = 0; s < sequences.count(); ++s) {
      for (Dim i = sequences.begin(s); i < sequences.end(s); ++i) {
        const Dim id =
            tensor.dtype() == DType::kInt64 ? tensor.Data<std::int64_t>()[i] : tensor.Data<std::int32_t>()[i];
        if (id < 0 || id >= width) {
          return InvalidArgument("E-op-index", ids_.what(), ": id ", id, " of sequence ", s,
                                 " is outside a row of ", width, " elements");
        }
        visit(s * width + id, i);
      }
    }
    return OkStatus();
  }

 private:
  SequenceInput ids_;
  Shape matrix_;
};

template <typename Device, typename T>
class SequenceScatterKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    PENSTOCK_RETURN_IF_ERROR(ids_.Prepare(k, "X"));
    k.Bind(x_, updates_, out_);
    return RequireCount(k, "Updates", k.Input("Ids").shape.Count());
  }

  Status Run(KernelRun& k) override {
    const Tensor& x = k[x_];
    T* const out = k[out_].template Data<T>();
    const T* const updates = k[updates_].template Data<T>();
    if (x.Data<T>() != out) std::ranges::copy(x.Span<T>(), out);
    return ids_.Each(k, [&](Dim at, Dim i) { out[at] += updates[i]; });
  }

 private:
  ScatterIds ids_;
  In<"X"> x_;
  In<"Updates"> updates_;
  Out<"Out"> out_;
};

template <typename Device, typename T>
class SequenceScatterGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    const Shape& dout = k.Input("Out@GRAD").shape;
    if (dout.rank() != 2) return k.Error("rank of Out@GRAD (", dout, ") must be 2");
    PENSTOCK_RETURN_IF_ERROR(ids_.Prepare(k, "Out@GRAD"));
    k.Bind(dout_, dx_, dupdates_);
    return RequireCount(k, "Updates", k.Input("Ids").shape.Count());
  }

  Status Run(KernelRun& k) override {
    const T* const dout = k[dout_].template Data<T>();
    if (dx_) std::copy_n(dout, k[dout_].count(), k[dx_].template Data<T>());
    if (!dupdates_) return OkStatus();
    T* const dupdates = k[dupdates_].template Data<T>();
    return ids_.Each(k, [&](Dim at, Dim i) { dupdates[i] = dout[at]; });
  }

 private:
  ScatterIds ids_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  Out<"Updates@GRAD"> dupdates_;
};

// X itself is not read: its gradient has the shape of Out.
Status InferSequenceScatterGrad(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("Out@GRAD", "X@GRAD"));
  return GradsWithLodUndeclared({"Updates"})(c);
}

}  // namespace

void RegisterSequenceScatter(OpRegistry& ops) {
  OpDef& def = ops.Add("sequence_scatter");
  def.Doc("Adds updates to the elements of each row whose indices a sequence lists.", kDoc)
      .Input("X", "a matrix", Numbers())
      .Input("Ids", "column indices, one sequence per row of X", Integers())
      .Input("Updates", "the values to add, one for each of Ids", SameTypeAs("X"))
      .Output("Out", "the sums", SameTypeAs("X"))
      .InferShape(InferSequenceScatter)
      .Kernel<Cpu, SequenceScatterKernel, float, double, std::int32_t, std::int64_t>()
      .Grad({.reads = {"Ids", "Updates"}, .yields = {"X", "Updates"}})
      .GradKernel<Cpu, SequenceScatterGradKernel, float, double, std::int32_t, std::int64_t>();
  def.GradDef().KernelTypeFrom("Out@GRAD").InferShape(InferSequenceScatterGrad);
}

}  // namespace penstock
