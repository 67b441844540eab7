// squared_l2_norm, squared_l2_distance: sums of squares, of all elements or of the difference of rows.
#include <algorithm>

#include "framework/op/op_registry.h"
#include "operators/common/parallel.h"
#include "operators/common/reduce.h"
#include "operators/common/require_shape.h"
#include "operators/math/row_pairs.h"

namespace penstock {
namespace {

constexpr char kNormDoc[] = R"(
Out[0] = sum of X * X, computed in double precision in a fixed order.)";

constexpr char kDistanceDoc[] = R"(
sub_result = X - Y, as a matrix of rows
Out[i]     = sum of sub_result[i] * sub_result[i]

A row consists of all dimensions after the first. Y may have one row, which is used for all rows of X.)";

template <typename Device, typename T>
class SquaredNormKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const T* const x = k[x_].template Data<T>();
    *k[out_].template Data<T>() = static_cast<T>(TotalOfSquares(x, k[x_].count()));
    return OkStatus();
  }

 private:
  In<"X"> x_;
  Out<"Out"> out_;
};

template <typename Device, typename T>
class SquaredNormGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, dout_, dx_);
    return RequireCount(k, "Out@GRAD", 1);
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    const T* const x = k[x_].template Data<T>();
    const T factor = T{2} * *k[dout_].template Data<T>();
    T* const dx = k[dx_].template Data<T>();
    ForElements(k[x_].count(), StreamNs<T>(2), [&](Dim begin, Dim end) {
      for (Dim i = begin; i < end; ++i) dx[i] = factor * x[i];
    });
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
};

Status InferDistance(InferContext& c) {
  PENSTOCK_ASSIGN_OR_RETURN(const RowPairs pairs, PairRows(c, c.ShapeOf("X"), c.ShapeOf("Y")));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("sub_result", {pairs.rows, pairs.width}));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("Out", {pairs.rows, 1}));
  c.ShareLod("X", "Out");
  return OkStatus();
}

template <typename Device, typename T>
class SquaredDistanceKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, y_, difference_, out_);
    PENSTOCK_ASSIGN_OR_RETURN(pairs_, PairRows(k, k[x_].shape, k[y_].shape));
    return RequireOutput(k, "sub_result");
  }
  Status Run(KernelRun& k) override {
    const T* const x = k[x_].template Data<T>();
    const T* const y = k[y_].template Data<T>();
    T* const out = k[out_].template Data<T>();
    for (Dim i = 0; i < pairs_.rows; ++i) {
      const T* const a = x + i * pairs_.width;
      const T* const b = y + pairs_.YRow(i) * pairs_.width;
      T* const difference = k[difference_].template Data<T>() + i * pairs_.width;
      for (Dim d = 0; d < pairs_.width; ++d) difference[d] = a[d] - b[d];
      out[i] = SumOf<T>(pairs_.width, [difference](Dim d) { return difference[d] * difference[d]; });
    }
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Y"> y_;
  Out<"sub_result"> difference_;
  Out<"Out"> out_;
  RowPairs pairs_;
};

template <typename Device, typename T>
class SquaredDistanceGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(difference_, dout_, dx_, dy_);
    PENSTOCK_ASSIGN_OR_RETURN(pairs_, PairRows(k, k.Input("X").shape, k.Input("Y").shape));
    PENSTOCK_RETURN_IF_ERROR(RequireCount(k, "sub_result", pairs_.rows * pairs_.width));
    return RequireCount(k, "Out@GRAD", pairs_.rows);
  }
  Status Run(KernelRun& k) override {
    const T* const difference = k[difference_].template Data<T>();
    const T* const dout = k[dout_].template Data<T>();
    T* const dx = dx_ ? k[dx_].template Data<T>() : nullptr;
    T* const dy = dy_ ? k[dy_].template Data<T>() : nullptr;
    if (dy != nullptr) std::ranges::fill(k[dy_].template Span<T>(), T{0});
    for (Dim i = 0; i < pairs_.rows; ++i) {
      for (Dim d = 0; d < pairs_.width; ++d) {
        const T slope = T{2} * dout[i] * difference[i * pairs_.width + d];
        if (dx != nullptr) dx[i * pairs_.width + d] = slope;
        if (dy != nullptr) dy[pairs_.YRow(i) * pairs_.width + d] -= slope;
      }
    }
    return OkStatus();
  }

 private:
  In<"sub_result"> difference_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  Out<"Y@GRAD"> dy_;
  RowPairs pairs_;
};

}  // namespace

void RegisterSquaredL2(OpRegistry& ops) {
  ops.Add("squared_l2_norm")
      .Doc("The sum of all squares.", kNormDoc)
      .Input("X", "any shape", Floats())
      .Output("Out", "one element", SameTypeAs("X"))
      .InferShape([](InferContext& c) { return c.SetShape("Out", {1}); })
      .WhenSliced([](const Op&) { return OnSlices::kAddsUp; })
      .Kernel<Cpu, SquaredNormKernel, float, double>()
      .Grad({.reads = {"X"}, .yields = {"X"}})
      .GradKernel<Cpu, SquaredNormGradKernel, float, double>();
  ops.Add("squared_l2_distance")
      .Doc("The squared distance between rows of X and Y.", kDistanceDoc)
      .Input("X", "of rank 2 or more", Floats())
      .Input("Y", "shaped like X, or with one row", SameTypeAs("X"))
      .Output("sub_result", "X - Y", SameTypeAs("X"), Intermediate() | Apart())
      .Output("Out", "one distance per row of X", SameTypeAs("X"))
      .InferShape(InferDistance)
      .Kernel<Cpu, SquaredDistanceKernel, float, double>()
      .Grad({.reads = {"X", "Y"}, .reads_outputs = {"sub_result"}, .yields = {"X", "Y"}, .apart = {"X", "Y"}})
      .GradKernel<Cpu, SquaredDistanceGradKernel, float, double>();
}

}  // namespace penstock
