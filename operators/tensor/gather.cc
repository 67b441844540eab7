// gather: selects rows of a tensor by index.
#include <algorithm>
#include <cstring>
#include <string>

#include "framework/op/op_registry.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out[i] = X[Index[i]], where a row consists of all dimensions of X after the first. An index outside X is an
error. The gradient of a row is the sum over the positions that selected it; with overwrite it is only the
last of these, which is the same if no row is selected twice.)";

// Returns the number of rows that Index selects: it has rank 1, or rank 2 with a last dimension of 1.
Status InferGather(InferContext& c) {
  const Shape& index = c.ShapeOf("Index");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("X", 0));
  const bool is_column = index.rank() == 2 && Compatible(index[1], 1);
  if (index.rank() != 1 && !is_column) return c.Error("shape of Index (", index, ") must be [n] or [n, 1]");
  return c.SetShape("Out", c.ShapeOf("X").WithRows(index[0]));
}

Status OutOfRows(const char* type, std::int64_t at, Dim rows) {
  return InvalidArgument("E-op-index", type, ": index ", at, " is outside of X, which has ", rows, " rows");
}

// Rows are copied as bytes, so that one kernel per index type serves all element types.
template <typename Device, typename Index>
class GatherKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, index_, out_);
    row_bytes_ = static_cast<std::size_t>(k[x_].shape.RowWidth()) * SizeOf(k[x_].dtype);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const std::byte* const x = k[x_].raw();
    std::byte* out = k[out_].raw();
    for (const Index at : k[index_].template Span<Index>()) {
      if (at < 0 || at >= k[x_].shape()[0]) return OutOfRows("gather", at, k[x_].shape()[0]);
      if (row_bytes_ == 0) continue;
      std::memcpy(out, x + static_cast<std::size_t>(at) * row_bytes_, row_bytes_);
      out += row_bytes_;
    }
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Index"> index_;
  Out<"Out"> out_;
  std::size_t row_bytes_ = 0;
};

template <typename Device, typename T>
class GatherGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(index_, dout_, dx_);
    overwrites_ = k.Attr<bool>("overwrite");
    if (k.Input("X").shape.rank() == 0) return k.Error("rank of X (0) must be above 0");
    rows_ = k.Input("X").shape[0];
    width_ = k.Input("X").shape.RowWidth();
    if (k[index_].dtype != DType::kInt32 && k[index_].dtype != DType::kInt64)
      return k.Error("element type of Index (", DTypeName(k[index_].dtype), ") must be i32 or i64");
    return RequireCount(k, "Out@GRAD", k[index_].shape.Count() * width_);
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    std::ranges::fill(k[dx_].template Span<T>(), T{0});
    return k[index_].dtype() == DType::kInt32 ? Spread<std::int32_t>(k) : Spread<std::int64_t>(k);
  }

 private:
  template <typename Index>
  Status Spread(KernelRun& k) {
    const T* dout = k[dout_].template Data<T>();
    T* const dx = k[dx_].template Data<T>();
    for (const Index at : k[index_].template Span<Index>()) {
      if (at < 0 || at >= rows_) return OutOfRows("gather_grad", at, rows_);
      T* const row = dx + at * width_;
      for (Dim j = 0; j < width_; ++j) row[j] = overwrites_ ? dout[j] : row[j] + dout[j];
      dout += width_;
    }
    return OkStatus();
  }

  In<"Index"> index_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  bool overwrites_ = true;
  Dim rows_ = 0, width_ = 0;
};

}  // namespace

void RegisterGather(OpRegistry& ops) {
  ops.Add("gather")
      .Doc("Selects rows of a tensor by index.", kDoc)
      .Input("X", "of rank 1 or more; rows are its first dimension", AnyType())
      .Input("Index", "row indices, [n] or [n, 1]", Integers())
      .Output("Out", "the rows", SameTypeAs("X"), Apart())
      .Attr("overwrite", true, "whether the gradient of a row is that of its last use only")
      .InferShape(InferGather)
      .KernelTypeFrom("Index")
      .Kernel<Cpu, GatherKernel, std::int32_t, std::int64_t>()
      .Grad({.reads = {"Index", "X"}, .yields = {"X"}, .shapes = {"X"}, .apart = {"X"}})
      .GradKernel<Cpu, GatherGradKernel, float, double>()
      .GradDef()
      .KernelTypeFrom("Out@GRAD");
}

}  // namespace penstock
