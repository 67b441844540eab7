// index_select: selects slices of a tensor along one axis. index_sample: selects elements of each row by the
// indices in that row of Index.
#include <algorithm>
#include <cstring>
#include <string>

#include "framework/op/op_registry.h"
#include "operators/common/axis_view.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kSelectDoc[] = R"(
Out[..., i, ...] = X[..., Index[i], ...] along dimension `dim` (negative values count from the end). An index
outside the dimension is an error. The gradient of a slice is the sum over the positions that selected it.)";

constexpr char kSampleDoc[] = R"(
Out[i, j] = X[i, Index[i, j]]. An index outside a row is an error. The gradient of an element is the sum over
the positions that selected it.)";

Status InferSelect(InferContext& c) {
  const Shape &x = c.ShapeOf("X"), &index = c.ShapeOf("Index");
  PENSTOCK_ASSIGN_OR_RETURN(const int dim, ResolveAxis(c, x, c.Attr<int>("dim")));
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("Index", 1));
  Shape out = x;
  out.Set(dim, index[0]);
  if (dim != 0) c.ShareLod("X", "Out");
  return c.SetShape("Out", out);
}

Status InferSample(InferContext& c) {
  const Shape &x = c.ShapeOf("X"), &index = c.ShapeOf("Index");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("X", 2));
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("Index", 2));
  if (!Compatible(x[0], index[0]))
    return c.Error("Index (", index, ") must have as many rows as X (", x, ")");
  c.ShareLod("X", "Out");
  return c.SetShape("Out", index);
}

// The positions of Out's elements in X, for both ops.
class SelectedPlaces {
 public:
  Status Prepare(const KernelSetup& k) {
    type_ = k.op().type();
    k.Bind(index_);
    const Shape& x = k.Input("X").shape;
    samples_ = k.op().FindAttr("dim") == nullptr && type_.starts_with("index_sample");
    if (k[index_].dtype != DType::kInt32 && k[index_].dtype != DType::kInt64)
      return k.Error("element type of Index (", DTypeName(k[index_].dtype), ") must be i32 or i64");
    if (samples_) {
      if (x.rank() != 2 || k[index_].shape.rank() != 2 || x[0] != k[index_].shape[0])
        return k.Error("X (", x, ") and Index (", k[index_].shape,
                       ") must be matrices with the same number of rows");
      view_ = ViewAlong(x, 1);
      each_ = k[index_].shape[1];
      return OkStatus();
    }
    PENSTOCK_ASSIGN_OR_RETURN(const int dim, ResolveAxis(k, x, k.Attr<int>("dim")));
    if (k[index_].shape.rank() != 1) return k.Error("rank of Index (", k[index_].shape, ") must be 1");
    view_ = ViewAlong(x, dim);
    each_ = k[index_].shape[0];
    return OkStatus();
  }
  Dim count() const { return view_.outer * each_ * view_.inner; }
  Dim inner() const { return view_.inner; }

  // Calls visit(position in Out, position in X) for each run of inner() elements.
  template <typename Visit>
  Status ForEachRun(KernelRun& k, Visit visit) const {
    return k[index_].dtype() == DType::kInt32 ? Walk<std::int32_t>(k, visit) : Walk<std::int64_t>(k, visit);
  }

 private:
  template <typename Index, typename Visit>
  Status Walk(KernelRun& k, Visit visit) const {
    const Index* const index = k[index_].template Data<Index>();
    for (Dim o = 0; o < view_.outer; ++o) {
      for (Dim i = 0; i < each_; ++i) {
        const Index at = index[samples_ ? o * each_ + i : i];
        if (at < 0 || at >= view_.width) {
          return InvalidArgument("E-op-index", type_, ": Index names ", at, "; it must be in [0, ",
                                 view_.width, "), the extent of X");
        }
        visit((o * each_ + i) * view_.inner, (o * view_.width + at) * view_.inner);
      }
    }
    return OkStatus();
  }

  std::string type_;
  In<"Index"> index_;
  AxisView view_;
  Dim each_ = 0;  // indices per outer index of view_
  bool samples_ = false;
};

class SelectKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_);
    return places_.Prepare(k);
  }
  Status Run(KernelRun& k) override {
    const std::size_t size = SizeOf(k[x_].dtype()), bytes = static_cast<std::size_t>(places_.inner()) * size;
    const std::byte* const x = k[x_].raw();
    std::byte* const out = k[out_].raw();
    return places_.ForEachRun(k, [&](Dim to, Dim from) {
      if (bytes == 0) return;
      std::memcpy(out + static_cast<std::size_t>(to) * size, x + static_cast<std::size_t>(from) * size,
                  bytes);
    });
  }

 private:
  In<"X"> x_;
  Out<"Out"> out_;
  SelectedPlaces places_;
};

template <typename Device, typename T>
class SelectGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(dout_, dx_);
    PENSTOCK_RETURN_IF_ERROR(places_.Prepare(k));
    return RequireCount(k, "Out@GRAD", places_.count());
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    std::ranges::fill(k[dx_].template Span<T>(), T{0});
    const T* const dout = k[dout_].template Data<T>();
    T* const dx = k[dx_].template Data<T>();
    return places_.ForEachRun(k, [&](Dim from, Dim to) {
      for (Dim j = 0; j < places_.inner(); ++j) dx[to + j] += dout[from + j];
    });
  }

 private:
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  SelectedPlaces places_;
};

void FinishSelection(OpDef& def) {
  def.KernelForAnyType<Cpu, SelectKernel>()
      .Grad({.reads = {"X", "Index"}, .yields = {"X"}, .apart = {"X"}})
      .GradKernel<Cpu, SelectGradKernel, float, double>()
      .GradDef()
      .KernelTypeFrom("Out@GRAD");
}

}  // namespace

void RegisterIndexSelect(OpRegistry& ops) {
  FinishSelection(
      ops.Add("index_select")
          .Doc("Selects slices of a tensor along one axis.", kSelectDoc)
          .Input("X", "of rank 1 or more", AnyType())
          .Input("Index", "[n]", Integers())
          .Output("Out", "shaped like X, with dimension `dim` of size n", SameTypeAs("X"), Apart())
          .Attr("dim", 0, "the axis")
          .InferShape(InferSelect));
  FinishSelection(ops.Add("index_sample")
                      .Doc("Selects elements of each row by separate indices.", kSampleDoc)
                      .Input("X", "[rows, columns]", AnyType())
                      .Input("Index", "[rows, n]", Integers())
                      .Output("Out", "[rows, n]", SameTypeAs("X"), Apart())
                      .InferShape(InferSample));
}

}  // namespace penstock
