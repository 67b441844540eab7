// fsp: the correlations between the channels of two feature maps (flow of solution procedure).
#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "framework/op/op_registry.h"
#include "operators/common/gemm.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out[n, i, j] is the mean, over all positions, of X[n, i] * Y[n, j].

J. Yim, D. Joo, J. Bae, J. Kim: "A gift from knowledge distillation", CVPR 2017.)";

Status InferFsp(InferContext& c) {
  const Shape &x = c.ShapeOf("X"), &y = c.ShapeOf("Y");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("X", 4));
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("Y", 4));
  if (!Compatible(x[0], y[0]) || !Compatible(x.From(2), y.From(2)))
    return c.Error("Y (", y, ") must have the images of X (", x, "), of the same height and width");
  return c.SetShape("Out", {x[0], x[1], y[1]});
}

// The images as matrices [channels, positions], for both kernels.
struct FspSizes {
  Dim images = 0, x_channels = 0, y_channels = 0, places = 0;

  Status Read(const KernelSetup& k) {
    const Shape &x = k.Input("X").shape, &y = k.Input("Y").shape;
    if (x.rank() != 4 || y.rank() != 4 || x[0] != y[0] || x.From(2) != y.From(2))
      return k.Error("Y (", y, ") must have the images of X (", x, "), of the same height and width");
    images = x[0];
    x_channels = x[1];
    y_channels = y[1];
    places = x[2] * x[3];
    return OkStatus();
  }
  template <typename T>
  MatrixView<T> X(T* x, Dim n) const {
    return RowMajor(x + n * x_channels * places, x_channels, places);
  }
  template <typename T>
  MatrixView<T> Y(T* y, Dim n) const {
    return RowMajor(y + n * y_channels * places, y_channels, places);
  }
  template <typename T>
  MatrixView<T> Out(T* out, Dim n) const {
    return RowMajor(out + n * x_channels * y_channels, x_channels, y_channels);
  }
};

template <typename T>
void DivideBy(Dim places, std::span<T> all) {
  for (T& one : all) one /= static_cast<T>(places);
}

template <typename Device, typename T>
class FspKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, y_, out_);
    options_ = {.threads = k.threads()};
    return sizes_.Read(k);
  }
  Status Run(KernelRun& k) override {
    const T *const x = k[x_].template Data<T>(), *const y = k[y_].template Data<T>();
    for (Dim n = 0; n < sizes_.images; ++n) {
      PENSTOCK_RETURN_IF_ERROR(Gemm<T>(sizes_.X(x, n), Transposed(sizes_.Y(y, n)),
                                       sizes_.Out(k[out_].template Data<T>(), n), options_));
    }
    DivideBy(sizes_.places, k[out_].template Span<T>());
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Y"> y_;
  Out<"Out"> out_;
  GemmOptions options_;
  FspSizes sizes_;
};

template <typename Device, typename T>
class FspGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, y_, dout_, dx_, dy_);
    options_ = {.threads = k.threads()};
    PENSTOCK_RETURN_IF_ERROR(sizes_.Read(k));
    return RequireShape(k, "Out@GRAD", {sizes_.images, sizes_.x_channels, sizes_.y_channels});
  }
  Status Run(KernelRun& k) override {
    const T *const x = std::as_const(k[x_]).template Data<T>(), *const y =
                                                                    std::as_const(k[y_]).template Data<T>();
    const T* const dout = std::as_const(k[dout_]).template Data<T>();
    for (Dim n = 0; n < sizes_.images; ++n) {
      if (dx_)
        PENSTOCK_RETURN_IF_ERROR(
            Gemm<T>(sizes_.Out(dout, n), sizes_.Y(y, n), sizes_.X(k[dx_].template Data<T>(), n), options_));
      if (dy_)
        PENSTOCK_RETURN_IF_ERROR(Gemm<T>(Transposed(sizes_.Out(dout, n)), sizes_.X(x, n),
                                         sizes_.Y(k[dy_].template Data<T>(), n), options_));
    }
    if (dx_) DivideBy(sizes_.places, k[dx_].template Span<T>());
    if (dy_) DivideBy(sizes_.places, k[dy_].template Span<T>());
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Y"> y_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  Out<"Y@GRAD"> dy_;
  GemmOptions options_;
  FspSizes sizes_;
};

}  // namespace

void RegisterFsp(OpRegistry& ops) {
  ops.Add("fsp")
      .Doc(
          "The products of the channels of two feature maps, averaged over positions (flow of solution "
          "procedure).",
          kDoc)
      .Input("X", "[images, channels, height, width]", Floats())
      .Input("Y", "[images, channels, height, width]; the number of channels may differ", SameTypeAs("X"))
      .Output("Out", "[images, channels of X, channels of Y]", SameTypeAs("X"), Apart())
      .InferShape(InferFsp)
      .Kernel<Cpu, FspKernel, float, double>()
      .Grad({.reads = {"X", "Y"}, .yields = {"X", "Y"}, .apart = {"X", "Y"}})
      .GradKernel<Cpu, FspGradKernel, float, double>();
}

}  // namespace penstock
