// conv_shift: the circular convolution by which a Neural Turing Machine shifts its attention.
#include <algorithm>

#include "framework/op/op_registry.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
X is [rows, m] and Y is [rows, n], where n is odd and at most m.

Out[r, i] = sum over j in [0, n) of X[r, (i + j - (n - 1) / 2) mod m] * Y[r, j]

Graves, Wayne, Danihelka: "Neural Turing Machines", arXiv:1410.5401, 2014.)";

// Context is an InferContext or a KernelSetup.
template <typename Context>
Status CheckShift(const Context& c, const Shape& x, const Shape& y) {
  if (x.rank() != 2 || y.rank() != 2)
    return c.Error("ranks of X (", x.rank(), ", shape ", x, ") and Y (", y.rank(), ", shape ", y,
                   ") must be 2");
  if (!Compatible(x[0], y[0])) return c.Error("rows of Y (", y[0], ") must equal rows of X (", x[0], ")");
  if (y[1] == kUnknownDim) return OkStatus();
  if (y[1] % 2 == 0) return c.Error("the width of Y (", y[1], ") must be odd");
  if (x[1] != kUnknownDim && y[1] > x[1])
    return c.Error("the width of Y (", y[1], ") must be at most that of X (", x[1], ")");
  return OkStatus();
}

Status InferConvShift(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(CheckShift(c, c.ShapeOf("X"), c.ShapeOf("Y")));
  return c.ShareAll("X", "Out");
}

// The rows of X and Y, and the pairs of their elements that are multiplied.
struct Shift {
  Dim rows = 0, width = 0, taps = 0;

  // Calls step(element of Out, of X, of Y) for each product.
  template <typename Step>
  void ForEach(Step step) const {
    const Dim half = (taps - 1) / 2;
    for (Dim r = 0; r < rows; ++r) {
      for (Dim i = 0; i < width; ++i) {
        Dim at = (i - half + width) % width;
        for (Dim j = 0; j < taps; ++j, at = at + 1 == width ? 0 : at + 1)
          step(r * width + i, r * width + at, r * taps + j);
      }
    }
  }
};

template <typename Device, typename T>
class ConvShiftKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, y_, out_);
    PENSTOCK_RETURN_IF_ERROR(CheckShift(k, k[x_].shape, k[y_].shape));
    shift_ = {k[x_].shape[0], k[x_].shape[1], k[y_].shape[1]};
    return RequireApart(k, "Out");
  }
  Status Run(KernelRun& k) override {
    const T* const x = k[x_].template Data<T>();
    const T* const y = k[y_].template Data<T>();
    T* const out = k[out_].template Data<T>();
    std::ranges::fill(k[out_].template Span<T>(), T{0});
    shift_.ForEach([=](Dim o, Dim i, Dim j) { out[o] += x[i] * y[j]; });
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Y"> y_;
  Out<"Out"> out_;
  Shift shift_;
};

template <typename Device, typename T>
class ConvShiftGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, y_, dout_, dx_, dy_);
    PENSTOCK_RETURN_IF_ERROR(CheckShift(k, k[x_].shape, k[y_].shape));
    shift_ = {k[x_].shape[0], k[x_].shape[1], k[y_].shape[1]};
    return RequireShape(k, "Out@GRAD", k[x_].shape);
  }
  Status Run(KernelRun& k) override {
    const T* const x = k[x_].template Data<T>();
    const T* const y = k[y_].template Data<T>();
    const T* const dout = k[dout_].template Data<T>();
    if (dx_) {
      T* const dx = k[dx_].template Data<T>();
      std::ranges::fill(k[dx_].template Span<T>(), T{0});
      shift_.ForEach([=](Dim o, Dim i, Dim j) { dx[i] += dout[o] * y[j]; });
    }
    if (dy_) {
      T* const dy = k[dy_].template Data<T>();
      std::ranges::fill(k[dy_].template Span<T>(), T{0});
      shift_.ForEach([=](Dim o, Dim i, Dim j) { dy[j] += dout[o] * x[i]; });
    }
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Y"> y_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  Out<"Y@GRAD"> dy_;
  Shift shift_;
};

}  // namespace

void RegisterConvShift(OpRegistry& ops) {
  ops.Add("conv_shift")
      .Doc("The circular convolution of rows.", kDoc)
      .Input("X", "[rows, m]", Floats())
      .Input("Y", "[rows, n], n odd and at most m", SameTypeAs("X"))
      .Output("Out", "shaped like X", SameTypeAs("X"), Apart())
      .InferShape(InferConvShift)
      .Kernel<Cpu, ConvShiftKernel, float, double>()
      .Grad({.reads = {"X", "Y"}, .yields = {"X", "Y"}, .apart = {"X", "Y"}})
      .GradKernel<Cpu, ConvShiftGradKernel, float, double>();
}

}  // namespace penstock
