// bilinear_tensor_product: evaluates several bilinear forms for each pair of rows.
#include <algorithm>
#include <string>
#include <utility>

#include "framework/op/op_registry.h"
#include "operators/common/gemm.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out[r, i] = X[r] . Weight[i] . Y[r]' (+ Bias[i]) for each row r.)";

Status InferBilinear(InferContext& c) {
  const Shape &x = c.ShapeOf("X"), &y = c.ShapeOf("Y"), &weight = c.ShapeOf("Weight");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("X", 2));
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("Y", 2));
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("Weight", 3));
  if (!Compatible(x[0], y[0])) return c.Error("Y (", y, ") must have as many rows as X (", x, ")");
  if (!Compatible(weight[1], x[1]) || !Compatible(weight[2], y[1]))
    return c.Error("Weight (", weight, ") must be [n, columns of X (", x, "), columns of Y (", y, ")]");
  if (c.HasInput("Bias") && !Compatible(c.ShapeOf("Bias"), Shape{1, weight[0]}))
    return c.Error("Bias (", c.ShapeOf("Bias"), ") must be [1, ", weight[0], "]");
  c.ShareLod("X", "Out");
  return c.SetShape("Out", {x[0], weight[0]});
}

// The shapes of the matrices, for both kernels.
struct BilinearSizes {
  Dim rows = 0, x_width = 0, y_width = 0, kinds = 0;

  Status Read(const KernelSetup& k) {
    const Shape &x = k.Input("X").shape, &y = k.Input("Y").shape, &weight = k.Input("Weight").shape;
    if (x.rank() != 2 || y.rank() != 2 || weight.rank() != 3 || y[0] != x[0] || weight[1] != x[1] ||
        weight[2] != y[1])
      return k.Error("Weight (", weight, ") must be [n, columns of X (", x, "), columns of Y (", y, ")]");
    rows = x[0];
    x_width = x[1];
    y_width = y[1];
    kinds = weight[0];
    return OkStatus();
  }
  template <typename T>
  MatrixView<T> X(T* x) const {
    return RowMajor(x, rows, x_width);
  }
  template <typename T>
  MatrixView<T> Y(T* y) const {
    return RowMajor(y, rows, y_width);
  }
  template <typename T>
  MatrixView<T> Weight(T* weight, Dim i) const {
    return RowMajor(weight + i * x_width * y_width, x_width, y_width);
  }
};

template <typename Device, typename T>
class BilinearKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, y_, weight_, bias_, out_);
    options_ = {.threads = k.threads()};
    PENSTOCK_RETURN_IF_ERROR(sizes_.Read(k));
    left_ = k.Workspace(static_cast<std::size_t>(sizes_.rows * sizes_.y_width) * sizeof(T));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const T *const x = k[x_].template Data<T>(), *const y = k[y_].template Data<T>();
    const T* const weight = k[weight_].template Data<T>();
    T *const left = reinterpret_cast<T*>(k.Workspace(left_)), *const out = k[out_].template Data<T>();
    for (Dim i = 0; i < sizes_.kinds; ++i) {
      PENSTOCK_RETURN_IF_ERROR(Gemm<T>(sizes_.X(x), sizes_.Weight(weight, i), sizes_.Y(left), options_));
      const T bias = bias_ ? k[bias_].template Data<T>()[i] : T{0};
      for (Dim r = 0; r < sizes_.rows; ++r) {
        T sum = bias;
        for (Dim j = 0; j < sizes_.y_width; ++j)
          sum += left[r * sizes_.y_width + j] * y[r * sizes_.y_width + j];
        out[r * sizes_.kinds + i] = sum;
      }
    }
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Y"> y_;
  In<"Weight"> weight_;
  In<"Bias"> bias_;
  Out<"Out"> out_;
  GemmOptions options_;
  BilinearSizes sizes_;
  WorkspaceId left_;
};

// With g = dOut[:, i] multiplied into every column: dX += (g Y) . Weight[i]', dY += (g X) . Weight[i],
// dWeight[i] = X' . (g Y).
template <typename Device, typename T>
class BilinearGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, y_, weight_, dout_, dx_, dy_, dweight_, dbias_);
    options_ = {.threads = k.threads()};
    PENSTOCK_RETURN_IF_ERROR(sizes_.Read(k));
    if (dbias_ && k[dbias_].shape.Count() != sizes_.kinds)
      return k.Error("Bias must hold ", sizes_.kinds, " elements");
    scaled_ = k.Workspace(static_cast<std::size_t>(sizes_.rows * std::max(sizes_.x_width, sizes_.y_width)) *
                          sizeof(T));
    return RequireShape(k, "Out@GRAD", {sizes_.rows, sizes_.kinds});
  }
  Status Run(KernelRun& k) override {
    for (const Operand grad : std::initializer_list<Operand>{dx_, dy_, dbias_}) {
      if (grad) std::ranges::fill(k[grad].template Span<T>(), T{0});
    }
    for (Dim i = 0; i < sizes_.kinds; ++i) PENSTOCK_RETURN_IF_ERROR(RunOne(k, i));
    return OkStatus();
  }

 private:
  Status RunOne(KernelRun& k, Dim i) {
    GemmOptions adds = options_;
    adds.add = true;
    const T* const weight = k[weight_].template Data<T>();
    if (dx_ || dweight_) {
      const auto y = sizes_.Y(static_cast<const T*>(Scaled(k, y_, sizes_.y_width, i)));
      if (dx_)
        PENSTOCK_RETURN_IF_ERROR(
            Gemm<T>(y, Transposed(sizes_.Weight(weight, i)), sizes_.X(k[dx_].template Data<T>()), adds));
      if (dweight_) {
        const auto x = sizes_.X(std::as_const(k[x_]).template Data<T>());
        PENSTOCK_RETURN_IF_ERROR(
            Gemm<T>(Transposed(x), y, sizes_.Weight(k[dweight_].template Data<T>(), i), options_));
      }
    }
    if (dy_) {
      const auto x = sizes_.X(static_cast<const T*>(Scaled(k, x_, sizes_.x_width, i)));
      PENSTOCK_RETURN_IF_ERROR(
          Gemm<T>(x, sizes_.Weight(weight, i), sizes_.Y(k[dy_].template Data<T>()), adds));
    }
    for (Dim r = 0; dbias_ && r < sizes_.rows; ++r)
      k[dbias_].template Data<T>()[i] += k[dout_].template Data<T>()[r * sizes_.kinds + i];
    return OkStatus();
  }
  T* Scaled(KernelRun& k, const Operand& factor, Dim width, Dim i) {
    T* const scaled = reinterpret_cast<T*>(k.Workspace(scaled_));
    const T* const from = k[factor].template Data<T>();
    const T* const dout = k[dout_].template Data<T>();
    for (Dim at = 0; at < sizes_.rows * width; ++at)
      scaled[at] = from[at] * dout[at / width * sizes_.kinds + i];
    return scaled;
  }

  In<"X"> x_;
  In<"Y"> y_;
  In<"Weight"> weight_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  Out<"Y@GRAD"> dy_;
  Out<"Weight@GRAD"> dweight_;
  Out<"Bias@GRAD"> dbias_;
  GemmOptions options_;
  BilinearSizes sizes_;
  WorkspaceId scaled_;
};

Status InferBilinearGrad(InferContext& c) {
  for (const char* slot : {"X", "Y", "Weight"})
    PENSTOCK_RETURN_IF_ERROR(c.ShareAll(slot, slot + std::string(kGradSuffix)));
  if (!c.HasOutput("Bias@GRAD") || c.ShapeOf("Weight").rank() == 0) return OkStatus();
  c.SetDType("Bias@GRAD", c.DTypeOf("Weight"));
  return c.SetShape("Bias@GRAD", {1, c.ShapeOf("Weight")[0]});
}

}  // namespace

void RegisterBilinearTensorProduct(OpRegistry& ops) {
  ops.Add("bilinear_tensor_product")
      .Doc("Evaluates several bilinear forms for each pair of rows.", kDoc)
      .Input("X", "[rows, columns]", Floats())
      .Input("Y", "[rows, columns]", SameTypeAs("X"))
      .Input("Weight", "[n, columns of X, columns of Y]", SameTypeAs("X"))
      .Input("Bias", "[1, n]: added to each row", SameTypeAs("X"), Optional())
      .Output("Out", "[rows, n]", SameTypeAs("X"), Apart())
      .InferShape(InferBilinear)
      .Kernel<Cpu, BilinearKernel, float, double>()
      .Grad({.reads = {"X", "Y", "Weight"},
             .yields = {"X", "Y", "Weight", "Bias"},
             .apart = {"X", "Y", "Weight", "Bias"}})
      .GradKernel<Cpu, BilinearGradKernel, float, double>()
      .GradDef()
      .InferShape(InferBilinearGrad);
}

}  // namespace penstock
