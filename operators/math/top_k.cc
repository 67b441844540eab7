// top_k: the k largest elements along the last axis, and their indices.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "framework/op/op_registry.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out holds the k largest elements of each row (the last dimension), largest first; Indices holds their
positions in the row. Of equal elements, the first comes first. Cost: rows * width * log(k).)";

Status InferTopK(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("X", 0));
  Shape shape = c.ShapeOf("X");
  const int last = shape.rank() - 1;
  const int k = c.Attr<int>("k");
  if (c.HasInput("K")) {
    if (!Compatible(c.ShapeOf("K").Count(), 1))
      return c.Error("K (", c.ShapeOf("K"), ") must hold one element");
    shape.Set(last, kUnknownDim);
  } else if (shape[last] != kUnknownDim && shape[last] < k) {
    return c.Error("k (", k, ") must be at most the last extent of X (", shape[last], ")");
  } else {
    shape.Set(last, k);
  }
  for (const char* out : {"Out", "Indices"}) {
    PENSTOCK_RETURN_IF_ERROR(c.ShareAll("X", out));
    PENSTOCK_RETURN_IF_ERROR(c.SetShape(out, shape));
  }
  return OkStatus();
}

// Orders by descending value, then by position: a total order, including NaN.
template <typename T>
bool Precedes(const T* row, std::int64_t a, std::int64_t b) {
  const bool a_nan = std::isnan(static_cast<double>(row[a]));
  const bool b_nan = std::isnan(static_cast<double>(row[b]));
  if (a_nan != b_nan) return a_nan;
  if (!a_nan && row[a] != row[b]) return row[a] > row[b];
  return a < b;
}

template <typename Device, typename T>
class TopKKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_, indices_, given_);
    k_ = k.Attr<int>("k");
    chosen_ = k[x_].shape;
    width_ = k[x_].shape[k[x_].shape.rank() - 1];
    rows_ = k[x_].shape.Product(0, k[x_].shape.rank() - 1);
    order_ = k.Workspace(static_cast<std::size_t>(width_) * sizeof(std::int64_t));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (given_) PENSTOCK_RETURN_IF_ERROR(TakeK(k));
    const T* row = k[x_].template Data<T>();
    T* out = k[out_].template Data<T>();
    std::int64_t* indices = k[indices_].template Data<std::int64_t>();
    auto* const order = reinterpret_cast<std::int64_t*>(k.Workspace(order_));
    for (Dim r = 0; r < rows_; ++r, row += width_, out += k_, indices += k_) {
      std::iota(order, order + width_, std::int64_t{0});
      std::partial_sort(order, order + k_, order + width_,
                        [row](std::int64_t a, std::int64_t b) { return Precedes(row, a, b); });
      for (Dim i = 0; i < k_; ++i) {
        out[i] = row[order[i]];
        indices[i] = order[i];
      }
    }
    return OkStatus();
  }

 private:
  Status TakeK(KernelRun& k) {
    const Tensor& given = k[given_];
    k_ = given.dtype() == DType::kInt32 ? Dim{*given.Data<std::int32_t>()} : Dim{*given.Data<std::int64_t>()};
    if (k_ < 1 || k_ > width_) {
      return InvalidArgument("E-op-top-k", "top_k: K holds ", k_, "; it must be in [1, ", width_,
                             "], the last extent of X");
    }
    chosen_.Set(chosen_.rank() - 1, k_);
    k[out_].Reset(DTypeOfT<T>::kValue, chosen_);
    k[indices_].Reset(DType::kInt64, chosen_);
    return OkStatus();
  }

  In<"X"> x_;
  In<"K"> given_;
  Out<"Out"> out_;
  Out<"Indices"> indices_;
  WorkspaceId order_;
  Shape chosen_;  // of Out
  Dim k_ = 1, width_ = 0, rows_ = 0;
};

// The gradient of each element of Out goes to the element of X from which it came.
template <typename Device, typename T>
class TopKGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(indices_, dout_, dx_);
    const Shape& x = k.Input("X").shape;
    if (x.rank() == 0 || k[dout_].shape.rank() != x.rank())
      return k.Error("ranks of X and Out@GRAD must be equal and above 0");
    width_ = x[x.rank() - 1];
    Shape chosen = x;
    chosen.Set(x.rank() - 1, k[dout_].shape[x.rank() - 1]);
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "Out@GRAD", chosen));
    return RequireShape(k, "Indices", chosen);
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    const std::int64_t* indices = k[indices_].template Data<std::int64_t>();
    const T* dout = k[dout_].template Data<T>();
    const Dim chosen = k[dout_].shape()[k[dout_].shape().rank() - 1];
    std::ranges::fill(k[dx_].template Span<T>(), T{0});
    T* dx = k[dx_].template Data<T>();
    const Dim rows = chosen == 0 ? 0 : k[dout_].count() / chosen;
    for (Dim r = 0; r < rows; ++r, indices += chosen, dout += chosen, dx += width_) {
      for (Dim i = 0; i < chosen; ++i) {
        if (indices[i] < 0 || indices[i] >= width_) {
          return InvalidArgument("E-op-index", "top_k_grad: index ", indices[i], " is outside the row of ",
                                 width_);
        }
        dx[indices[i]] = dout[i];
      }
    }
    return OkStatus();
  }

 private:
  In<"Indices"> indices_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  Dim width_ = 0;
};

}  // namespace

void RegisterTopK(OpRegistry& ops) {
  ops.Add("top_k")
      .Doc("The k largest elements of each row.", kDoc)
      .Input("X", "of rank 1 or more; rows are its last dimension", Numbers())
      .Input("K", "one element; replaces the attribute k", Integers(), Optional())
      .Output("Out", "the largest elements, in descending order", SameTypeAs("X"))
      .Output("Indices", "their positions in the row", Only(DType::kInt64))
      .Attr("k", 1, "the number of elements", AtLeast(1))
      .Nan("NaN is larger than any number.")
      .InferShape(InferTopK)
      .Kernel<Cpu, TopKKernel, float, double, std::int32_t, std::int64_t>()
      .Grad({.reads = {"X"},
             .reads_outputs = {"Indices"},
             .yields = {"X"},
             .of = {"Out"},
             .apart = {"X"},
             .copies_attrs = false})
      .GradKernel<Cpu, TopKGradKernel, float, double>();
}

}  // namespace penstock
