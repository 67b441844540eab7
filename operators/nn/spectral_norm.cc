// spectral_norm: divides a weight by an estimate of its largest singular value.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/between.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Weight is viewed as a matrix W whose rows are dimension dim and whose columns are the other dimensions in
order. Starting from U and V, repeats power_iters times:

v = W' . u / (norm(W' . u) + eps)
u = W . v / (norm(W . v) + eps)

Then

sigma = u' . W . v
Out   = Weight / sigma

U and V are not updated. The gradient treats u and v as constants.

Miyato, Kataoka, Koyama, Yoshida: "Spectral normalization for generative adversarial networks", ICLR 2018.)";

// A tensor viewed as that matrix: element (r, c) is at At(r, c).
struct WeightMatrix {
  Dim rows = 0, columns = 0, inner = 1;
  bool second = false;

  template <typename Context>
  Status Prepare(const Context& k, const Shape& weight) {
    const int dim = k.template Attr<std::int32_t>("dim");
    if (weight.rank() < 2 || weight.rank() > 5)
      return k.Error("rank of Weight (", weight.rank(), ", shape ", weight, ") must be 2 to 5");
    second = dim == 1;
    rows = weight[dim];
    inner = weight.Product(2, weight.rank());
    columns = weight[1 - dim] * inner;
    return OkStatus();
  }
  Dim At(Dim r, Dim c) const { return second ? (c / inner * rows + r) * inner + c % inner : r * columns + c; }
};

Status InferSpectralNorm(InferContext& c) {
  WeightMatrix m;
  const Shape& weight = c.ShapeOf("Weight");
  PENSTOCK_RETURN_IF_ERROR(m.Prepare(c, weight));
  const bool known = weight.Count() != kUnknownDim;
  if (!Compatible(c.ShapeOf("U"), Shape{m.rows}))
    return c.Error("shape of U (", c.ShapeOf("U"), ") must be [", m.rows, "]");
  if (!Compatible(c.ShapeOf("V"), Shape{known ? m.columns : kUnknownDim}))
    return c.Error("shape of V (", c.ShapeOf("V"), ") must be [", m.columns, "]");
  return c.ShareAll("Weight", "Out");
}

// Computes u, v and sigma, for both kernels.
template <typename T>
class PowerIteration {
 public:
  Status Prepare(const KernelSetup& k) {
    k.Bind(weight_, u_in_, v_in_);
    PENSTOCK_RETURN_IF_ERROR(matrix_.Prepare(k, k[weight_].shape));
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "U", {matrix_.rows}));
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "V", {matrix_.columns}));
    iterations_ = k.Attr<std::int32_t>("power_iters");
    epsilon_ = static_cast<double>(k.Attr<float>("eps"));
    u_.resize(static_cast<std::size_t>(matrix_.rows));
    v_.resize(static_cast<std::size_t>(matrix_.columns));
    return OkStatus();
  }
  void Run(KernelRun& k) {
    const T* const w = std::as_const(k[weight_]).template Data<T>();
    std::ranges::copy(std::as_const(k[u_in_]).template Span<T>(), u_.begin());
    std::ranges::copy(std::as_const(k[v_in_]).template Span<T>(), v_.begin());
    for (int i = 0; i < iterations_; ++i) {
      std::ranges::fill(v_, 0.0);
      ForEach([&](Dim at, double& u, double& v) { v += static_cast<double>(w[at]) * u; });
      Normalize(v_);
      std::ranges::fill(u_, 0.0);
      ForEach([&](Dim at, double& u, double& v) { u += static_cast<double>(w[at]) * v; });
      Normalize(u_);
    }
    sigma = 0;
    ForEach([&](Dim at, double& u, double& v) { sigma += u * static_cast<double>(w[at]) * v; });
  }
  // Calls visit(element of Weight, its u, its v) for each element.
  template <typename Visit>
  void ForEach(Visit visit) {
    for (Dim r = 0; r < matrix_.rows; ++r) {
      for (Dim c = 0; c < matrix_.columns; ++c)
        visit(matrix_.At(r, c), u_[static_cast<std::size_t>(r)], v_[static_cast<std::size_t>(c)]);
    }
  }
  double sigma = 0;

 private:
  void Normalize(std::vector<double>& x) const {
    double squares = 0;
    for (const double value : x) squares += value * value;
    for (double& value : x) value /= std::sqrt(squares) + epsilon_;
  }

  In<"Weight"> weight_;
  In<"U"> u_in_;
  In<"V"> v_in_;
  WeightMatrix matrix_;
  int iterations_ = 1;
  double epsilon_ = 0;
  std::vector<double> u_, v_;
};

template <typename Device, typename T>
class SpectralNormKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(weight_, out_);
    return iteration_.Prepare(k);
  }
  Status Run(KernelRun& k) override {
    iteration_.Run(k);
    const T* const w = std::as_const(k[weight_]).template Data<T>();
    T* const out = k[out_].template Data<T>();
    const Dim count = k[weight_].count();
    for (Dim i = 0; i < count; ++i) out[i] = static_cast<T>(static_cast<double>(w[i]) / iteration_.sigma);
    return OkStatus();
  }

 private:
  In<"Weight"> weight_;
  Out<"Out"> out_;
  PowerIteration<T> iteration_;
};

// dWeight = dOut / sigma - sum(dOut * Weight) / sigma^2 * u . v'
template <typename Device, typename T>
class SpectralNormGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(weight_, dout_, dweight_);
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "Out@GRAD", k[weight_].shape));
    return iteration_.Prepare(k);
  }
  Status Run(KernelRun& k) override {
    if (!dweight_) return OkStatus();
    iteration_.Run(k);
    const T* const w = std::as_const(k[weight_]).template Data<T>();
    const T* const dout = std::as_const(k[dout_]).template Data<T>();
    T* const dweight = k[dweight_].template Data<T>();
    double along = 0;
    const Dim count = k[weight_].count();
    for (Dim i = 0; i < count; ++i) along += static_cast<double>(dout[i]) * static_cast<double>(w[i]);
    const double sigma = iteration_.sigma;
    iteration_.ForEach([&](Dim at, double& u, double& v) {
      dweight[at] = static_cast<T>((static_cast<double>(dout[at]) - along / sigma * u * v) / sigma);
    });
    return OkStatus();
  }

 private:
  In<"Weight"> weight_;
  In<"Out@GRAD"> dout_;
  Out<"Weight@GRAD"> dweight_;
  PowerIteration<T> iteration_;
};

}  // namespace

void RegisterSpectralNorm(OpRegistry& ops) {
  ops.Add("spectral_norm")
      .Doc("Divides a weight by an estimate of its largest singular value.", kDoc)
      .Input("Weight", "of rank 2 to 5", Floats())
      .Input("U", "one element per row", SameTypeAs("Weight"))
      .Input("V", "one element per column", SameTypeAs("Weight"))
      .Output("Out", "shaped like Weight", SameTypeAs("Weight"), Apart())
      .Attr("dim", 0, "the dimension of Weight that forms the rows", OneOf({"0", "1"}))
      .Attr("power_iters", 1, "the number of power iterations", Between(0, 1 << 20))
      .Attr("eps", 1e-12f, "keeps norms away from 0")
      .InferShape(InferSpectralNorm)
      .Kernel<Cpu, SpectralNormKernel, float, double>()
      .Grad({.reads = {"U", "V", "Weight"}, .yields = {"Weight"}, .apart = {"Weight"}})
      .GradKernel<Cpu, SpectralNormGradKernel, float, double>();
}

}  // namespace penstock
