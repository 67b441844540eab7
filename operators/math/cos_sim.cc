// cos_sim: the cosine of the angle between rows of X and Y.
#include <algorithm>
#include <cmath>

#include "framework/op/op_registry.h"
#include "operators/common/fluid_attrs.h"
#include "operators/common/reduce.h"
#include "operators/common/require_shape.h"
#include "operators/math/row_pairs.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out[i] = X[i] . Y[i] / (|X[i]| * |Y[i]|)

A row consists of all dimensions after the first. Y may have one row, which is used for all rows of X. The
result is NaN for a row of zeros.)";

Status InferCosSim(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(PairRows(c, c.ShapeOf("X"), c.ShapeOf("Y")).status());
  const Dim rows = c.ShapeOf("X")[0];
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("Out", {rows, 1}));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("XNorm", {rows, 1}));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("YNorm", {c.ShapeOf("Y")[0], 1}));
  c.ShareLod("X", "Out");
  return OkStatus();
}

template <typename T>
double Dot(const T* a, const T* b, Dim width) {
  return SumOf<double>(width, [&](Dim i) { return static_cast<double>(a[i]) * static_cast<double>(b[i]); });
}

template <typename Device, typename T>
class CosSimKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, y_, out_, x_norm_, y_norm_);
    PENSTOCK_ASSIGN_OR_RETURN(pairs_, PairRows(k, k[x_].shape, k[y_].shape));
    PENSTOCK_RETURN_IF_ERROR(RequireOutput(k, "XNorm"));
    return RequireOutput(k, "YNorm");
  }
  Status Run(KernelRun& k) override {
    const T* const x = k[x_].template Data<T>();
    const T* const y = k[y_].template Data<T>();
    T* const out = k[out_].template Data<T>();
    T* const x_norm = k[x_norm_].template Data<T>();
    T* const y_norm = k[y_norm_].template Data<T>();
    const Dim width = pairs_.width;
    for (Dim j = 0; j < k[y_].shape()[0]; ++j)
      y_norm[j] = static_cast<T>(std::sqrt(Dot(y + j * width, y + j * width, width)));
    for (Dim i = 0; i < pairs_.rows; ++i) {
      const Dim j = pairs_.YRow(i);
      const T* const row = x + i * width;
      x_norm[i] = static_cast<T>(std::sqrt(Dot(row, row, width)));
      out[i] = static_cast<T>(Dot(row, y + j * width, width) /
                              (static_cast<double>(x_norm[i]) * static_cast<double>(y_norm[j])));
    }
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Y"> y_;
  Out<"Out"> out_;
  Out<"XNorm"> x_norm_;
  Out<"YNorm"> y_norm_;
  RowPairs pairs_;
};

// dX = dOut * (Y / (|X| |Y|) - Out * X / |X|^2), and the same for dY with X and Y exchanged.
template <typename Device, typename T>
class CosSimGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, y_, out_, x_norm_, y_norm_, dout_, dx_, dy_);
    PENSTOCK_ASSIGN_OR_RETURN(pairs_, PairRows(k, k[x_].shape, k[y_].shape));
    PENSTOCK_RETURN_IF_ERROR(RequireCount(k, "XNorm", pairs_.rows));
    PENSTOCK_RETURN_IF_ERROR(RequireCount(k, "YNorm", k[y_].shape[0]));
    PENSTOCK_RETURN_IF_ERROR(RequireCount(k, "Out", pairs_.rows));
    return RequireCount(k, "Out@GRAD", pairs_.rows);
  }
  Status Run(KernelRun& k) override {
    const T* const x = k[x_].template Data<T>();
    const T* const y = k[y_].template Data<T>();
    const T* const out = k[out_].template Data<T>();
    const T* const dout = k[dout_].template Data<T>();
    const T* const x_norm = k[x_norm_].template Data<T>();
    const T* const y_norm = k[y_norm_].template Data<T>();
    T* const dx = dx_ ? k[dx_].template Data<T>() : nullptr;
    T* const dy = dy_ ? k[dy_].template Data<T>() : nullptr;
    if (dy != nullptr) std::ranges::fill(k[dy_].template Span<T>(), T{0});
    const Dim width = pairs_.width;
    for (Dim i = 0; i < pairs_.rows; ++i) {
      const Dim j = pairs_.YRow(i);
      const T across = dout[i] / (x_norm[i] * y_norm[j]);
      const T along_x = dout[i] * out[i] / (x_norm[i] * x_norm[i]);
      const T along_y = dout[i] * out[i] / (y_norm[j] * y_norm[j]);
      const T* const a = x + i * width;
      const T* const b = y + j * width;
      if (dx != nullptr) {
        for (Dim d = 0; d < width; ++d) dx[i * width + d] = across * b[d] - along_x * a[d];
      }
      if (dy != nullptr) {
        for (Dim d = 0; d < width; ++d) dy[j * width + d] += across * a[d] - along_y * b[d];
      }
    }
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Y"> y_;
  In<"Out"> out_;
  In<"XNorm"> x_norm_;
  In<"YNorm"> y_norm_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  Out<"Y@GRAD"> dy_;
  RowPairs pairs_;
};

}  // namespace

void RegisterCosSim(OpRegistry& ops) {
  ops.Add("cos_sim")
      .Doc("The cosine of the angle between rows of X and Y.", kDoc)
      .Input("X", "of rank 2 or more", Floats())
      .Input("Y", "shaped like X, or with one row", SameTypeAs("X"))
      .Output("Out", "one cosine per row of X", SameTypeAs("X"))
      .Output("XNorm", "the norm of each row of X", SameTypeAs("X"), Intermediate())
      .Output("YNorm", "the norm of each row of Y", SameTypeAs("X"), Intermediate())
      .Attr("@ALL_KERNELS_MUST_COMPUTE_RUNTIME_SHAPE@", true, kNoEffect)
      .InferShape(InferCosSim)
      .Kernel<Cpu, CosSimKernel, float, double>()
      .Grad({.reads = {"X", "Y"},
             .reads_outputs = {"XNorm", "YNorm", "Out"},
             .yields = {"X", "Y"},
             .apart = {"X", "Y"}})
      .GradKernel<Cpu, CosSimGradKernel, float, double>();
}

}  // namespace penstock
