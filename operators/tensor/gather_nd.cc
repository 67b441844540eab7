// gather_nd, scatter_nd_add: parts of a tensor, selected by their leading indices: read, and added to.
#include <algorithm>
#include <cstring>
#include <string>

#include "framework/op/op_registry.h"
#include "operators/common/copy.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
The last dimension of Index has size n, the number of leading indices of X that it gives: Out[i..., :] =
X[Index[i..., 0], ..., Index[i..., n - 1], :]. An index outside its dimension is an error. The gradient of a
slice of X is the sum over the positions that selected it.)";

constexpr char kAddDoc[] = R"(
Out is X with Updates[i..., :] added to the slice that Index[i..., :] selects, as in gather_nd. A slice that
is selected several times receives all its updates.)";

// Returns the shape of the slices that Index selects from X.
Result<Shape> PartsShape(const InferContext& c) {
  const Shape &x = c.ShapeOf("X"), &index = c.ShapeOf("Index");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("Index", 0));
  const Dim given = index[index.rank() - 1];
  if (given == kUnknownDim) return c.Error("the last extent of Index (", index, ") must be known");
  if (given > x.rank())
    return c.Error("the last extent of Index (", index, ") must be at most the rank of X (", x, ")");
  return Concat(index.First(index.rank() - 1), x.From(static_cast<int>(given)));
}

Status InferGatherNd(InferContext& c) {
  PENSTOCK_ASSIGN_OR_RETURN(const Shape out, PartsShape(c));
  return c.SetShape("Out", out);
}

Status InferScatterNdAdd(InferContext& c) {
  PENSTOCK_ASSIGN_OR_RETURN(const Shape parts, PartsShape(c));
  if (!Compatible(c.ShapeOf("Updates"), parts))
    return c.Error("shape of Updates (", c.ShapeOf("Updates"), ") must be ", parts,
                   ", that of what Index takes");
  return c.ShareAll("X", "Out");
}

// The positions of the slices that Index selects.
class NamedParts {
 public:
  Status Prepare(const KernelSetup& k, const Shape& whole) {
    type_ = k.op().type();
    k.Bind(index_);
    whole_ = whole;
    if (k[index_].shape.rank() == 0) return k.Error("Index must have rank 1 or more");
    given_ = k[index_].shape[k[index_].shape.rank() - 1];
    if (given_ > whole.rank())
      return k.Error("the last extent of Index (", k[index_].shape, ") must be at most ", whole.rank());
    if (k[index_].dtype != DType::kInt32 && k[index_].dtype != DType::kInt64)
      return k.Error("element type of Index (", DTypeName(k[index_].dtype), ") must be i32 or i64");
    count_ = k[index_].shape.Product(0, k[index_].shape.rank() - 1);
    width_ = whole.Product(static_cast<int>(given_), whole.rank());
    return OkStatus();
  }
  Dim count() const { return count_; }
  Dim width() const { return width_; }  // elements of a slice

  // Calls visit(index of the slice, its first element in the whole) for each slice.
  template <typename Visit>
  Status ForEach(KernelRun& k, Visit visit) const {
    return k[index_].dtype() == DType::kInt32 ? ForEachOf<std::int32_t>(k, visit)
                                              : ForEachOf<std::int64_t>(k, visit);
  }

 private:
  template <typename Index, typename Visit>
  Status ForEachOf(KernelRun& k, Visit visit) const {
    const Index* at = k[index_].template Data<Index>();
    for (Dim i = 0; i < count_; ++i) {
      Dim place = 0;
      for (int d = 0; d < given_; ++d, ++at) {
        if (*at < 0 || *at >= whole_[d]) {
          return InvalidArgument("E-op-index", type_, ": Index names ", *at, " for extent ", d, " of ",
                                 whole_, "; it must be in [0, ", whole_[d], ")");
        }
        place = place * whole_[d] + *at;
      }
      visit(i, place * width_);
    }
    return OkStatus();
  }

  std::string type_;
  In<"Index"> index_;
  Shape whole_;
  Dim given_ = 0, count_ = 0, width_ = 0;
};

// Copies slices of `from` to `to`.
class TakeParts : public Kernel {
 public:
  Status PrepareTake(KernelSetup& k, const char* from, const char* to) {
    const Argument &source = k.Input(from), &target = k.Output(to);
    from_ = source;
    to_ = target;
    if (!to_) return OkStatus();
    PENSTOCK_RETURN_IF_ERROR(parts_.Prepare(k, source.shape));
    if (target.dtype != source.dtype || target.shape.Count() != parts_.count() * parts_.width())
      return k.Error(to, " (", target.shape, ") must hold the parts of ", from, " (", source.shape,
                     ") that Index names");
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (!to_) return OkStatus();
    const std::size_t size = SizeOf(k[from_].dtype());
    const std::size_t bytes = static_cast<std::size_t>(parts_.width()) * size;
    const std::byte* const from = k[from_].raw();
    std::byte* const to = k[to_].raw();
    return parts_.ForEach(k, [&](Dim i, Dim place) {
      if (bytes == 0) return;
      std::memcpy(to + static_cast<std::size_t>(i) * bytes, from + static_cast<std::size_t>(place) * size,
                  bytes);
    });
  }

 private:
  Operand from_, to_;
  NamedParts parts_;
};

class GatherNdKernel : public TakeParts {
 public:
  Status Prepare(KernelSetup& k) override { return PrepareTake(k, "X", "Out"); }
};

template <typename T>
void AddParts(const T* updates, Dim width, Dim i, Dim place, T* to) {
  for (Dim j = 0; j < width; ++j) to[place + j] += updates[i * width + j];
}

template <typename Device, typename T>
class GatherNdGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(dout_, dx_);
    PENSTOCK_RETURN_IF_ERROR(parts_.Prepare(k, k.Input("X").shape));
    return RequireCount(k, "Out@GRAD", parts_.count() * parts_.width());
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    std::ranges::fill(k[dx_].template Span<T>(), T{0});
    const T* const dout = k[dout_].template Data<T>();
    T* const dx = k[dx_].template Data<T>();
    return parts_.ForEach(k, [&](Dim i, Dim place) { AddParts(dout, parts_.width(), i, place, dx); });
  }

 private:
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  NamedParts parts_;
};

template <typename Device, typename T>
class ScatterNdAddKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, updates_, out_);
    PENSTOCK_RETURN_IF_ERROR(parts_.Prepare(k, k[x_].shape));
    return RequireCount(k, "Updates", parts_.count() * parts_.width());
  }
  Status Run(KernelRun& k) override {
    CopyElements(k, x_, out_);
    const T* const updates = k[updates_].template Data<T>();
    T* const out = k[out_].template Data<T>();
    return parts_.ForEach(k, [&](Dim i, Dim place) { AddParts(updates, parts_.width(), i, place, out); });
  }

 private:
  In<"X"> x_;
  In<"Updates"> updates_;
  Out<"Out"> out_;
  NamedParts parts_;
};

// The gradient of X is that of Out; that of Updates is its selected slices.
class ScatterNdAddGradKernel : public TakeParts {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(dout_, dx_);
    if (dx_) PENSTOCK_RETURN_IF_ERROR(RequireCount(k, "Out@GRAD", k[dx_].shape.Count()));
    return PrepareTake(k, "Out@GRAD", "Updates@GRAD");
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(TakeParts::Run(k));
    if (dx_) CopyElements(k, dout_, dx_);
    return OkStatus();
  }

 private:
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
};

Status InferScatterNdAddGrad(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("Out@GRAD", "X@GRAD"));
  return c.ShareAll("Updates", "Updates@GRAD");
}

}  // namespace

void RegisterGatherNd(OpRegistry& ops) {
  ops.Add("gather_nd")
      .Doc("Selects slices of a tensor by leading indices.", kDoc)
      .Input("X", "any shape", AnyType())
      .Input("Index", "[..., n]: n indices for each slice", Integers())
      .Output("Out", "the slices; the dimensions of Index except the last, then those of a slice",
              SameTypeAs("X"), Apart())
      .InferShape(InferGatherNd)
      .KernelForAnyType<Cpu, GatherNdKernel>()
      .Grad({.reads = {"Index", "X"}, .yields = {"X"}, .apart = {"X"}})
      .GradKernel<Cpu, GatherNdGradKernel, float, double>()
      .GradDef()
      .KernelTypeFrom("Out@GRAD");
  ops.Add("scatter_nd_add")
      .Doc("Adds to slices of a tensor selected by leading indices.", kAddDoc)
      .Input("X", "any shape", Numbers())
      .Input("Index", "[..., n]: n indices for each slice", Integers())
      .Input("Updates", "the values to add, in the shape of gather_nd's Out", SameTypeAs("X"))
      .Output("Out", "shaped like X", SameTypeAs("X"), Apart())
      .InferShape(InferScatterNdAdd)
      .Kernel<Cpu, ScatterNdAddKernel, float, double, std::int32_t, std::int64_t>()
      .Grad({.reads = {"Index", "Updates"}, .yields = {"X", "Updates"}, .apart = {"Updates"}})
      .GradDef()
      .InferShape(InferScatterNdAddGrad)
      .KernelForAnyType<Cpu, ScatterNdAddGradKernel>();
}

}  // namespace penstock
