// inplace_abn: batch_norm followed by an invertible activation, so that the result may overwrite X.
#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "framework/op/op_registry.h"
#include "operators/common/fluid_attrs.h"
#include "operators/common/nan.h"
#include "operators/common/require_shape.h"
#include "operators/nn/batch_norm.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Y = activation(batch_norm(X)), where Y may be the variable of X. In training, if there is one element per
channel, Y is activation(X). The gradient reads only Y: it inverts the activation and then Bias and Scale.
Where Scale is 0, that is impossible, and the gradient of Scale is 0.
activation is identity (or empty), leaky_relu (alpha * z below 0) or elu (alpha * (exp(z) - 1) below 0).
Rota Bulo, Porzi, Kontschieder: "In-Place Activated BatchNorm for Memory-Optimized Training of DNNs", CVPR
2018.)";

// The activation of an element; its inverse and its derivative, both as functions of the result y.
template <typename T>
struct Activation {
  enum Kind { kIdentity, kLeakyRelu, kElu } kind = kIdentity;
  T alpha{};

  T Of(T z) const {
    if (kind == kIdentity || z >= 0) return z;
    return kind == kLeakyRelu ? alpha * z : alpha * std::expm1(z);
  }
  T Undone(T y) const {
    if (kind == kIdentity || y >= 0) return y;
    return kind == kLeakyRelu ? y / alpha : std::log1p(y / alpha);
  }
  T Slope(T y) const {
    if (kind == kIdentity || y >= 0) return T{1};
    if (IsNan(y)) return y;
    return kind == kLeakyRelu ? alpha : y + alpha;
  }
};

template <typename T>
Result<Activation<T>> ActivationOf(const KernelSetup& k) {
  using A = Activation<T>;
  const auto name = k.Attr<std::string>("activation");
  A activation{.kind = name == "leaky_relu" ? A::kLeakyRelu
                       : name == "elu"      ? A::kElu
                                            : A::kIdentity,
               .alpha = static_cast<T>(k.Attr<float>("alpha"))};
  if (activation.kind != A::kIdentity && !(activation.alpha > 0))
    return k.Error("alpha (", activation.alpha, ") of ", name, " must be above 0: the gradient undoes it");
  return activation;
}

template <typename Device, typename T>
class InplaceAbnKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    PENSTOCK_RETURN_IF_ERROR(a_.Prepare(k));
    PENSTOCK_ASSIGN_OR_RETURN(activation_, ActivationOf<T>(k));
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    const T* const x = std::as_const(k[a_.x]).template Data<T>();
    const T* const scale = std::as_const(k[a_.scale]).template Data<T>();
    const T* const bias = std::as_const(k[a_.bias]).template Data<T>();
    T* const y = k[a_.y].template Data<T>();
    if (!a_.uses_running && a_.shape.PerChannel() <= 1) {  // no variance
      std::transform(x, x + k[a_.x].count(), y, [this](T z) { return activation_.Of(z); });
      a_.KeepRunning<T>(k);
      return OkStatus();
    }
    if (!a_.uses_running) MeasureBatch(k, x);
    const T* const means = k[a_.used_mean()].template Data<T>();
    const T* const variances = k[a_.used_variance()].template Data<T>();
    for (Dim c = 0; c < a_.shape.channels; ++c) {
      const T mean = means[c], factor = scale[c] / std::sqrt(variances[c] + static_cast<T>(a_.epsilon));
      a_.shape.EachElement(c, [&](Dim at) { y[at] = activation_.Of((x[at] - mean) * factor + bias[c]); });
    }
    a_.uses_running ? a_.KeepRunning<T>(k) : a_.MoveRunning<T>(k);
    return OkStatus();
  }

 private:
  // Writes mean and variance to saved_mean and saved_variance, where MoveRunning expects them.
  void MeasureBatch(KernelRun& k, const T* x) const {
    if constexpr (std::is_same_v<T, float>) {
      if (!a_.shape.channels_last) {
        vec::ChannelMoments(PlanesOf(a_.shape), 0, static_cast<std::size_t>(a_.shape.channels), x,
                            k[a_.saved_mean].template Data<float>(),
                            k[a_.saved_variance].template Data<float>());
        return;
      }
    }
    a_.Measure<T>(k);
  }

  BatchNormArguments a_;
  Activation<T> activation_;
};

// With z = batch_norm(X), dz = dY * slope and n = (z - Bias) / Scale, which is X normalised:
//   dBias = sum(dz), dScale = sum(dz * n), dX = Scale * r * (dz - (dBias + n * dScale) / count)
// with r = 1 / sqrt(variance + eps); with running moments, which do not depend on X: dX = Scale * r * dz.
template <typename Device, typename T>
class InplaceAbnGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(y_, dy_, scale_, bias_, dx_, dscale_, dbias_);
    uses_running_ = k.Attr<bool>("use_global_stats");
    epsilon_ = static_cast<T>(k.Attr<float>("epsilon"));
    if (!uses_running_ && UsesRunningStatistics(k))
      return k.Error("an inplace_abn with is_test has no gradient");
    const Argument& variance = k.Input(uses_running_ ? "Variance" : "SavedVariance");
    variance_ = variance;
    if (!variance_) return k.Error("use_global_stats needs Variance");
    if (k[y_].shape.rank() < 2 || k[y_].shape.rank() > 5)
      return k.Error("rank of Y (", k[y_].shape.rank(), ", shape ", k[y_].shape, ") must be 2 to 5");
    shape_ = MakeChannelShape(k[y_].shape, k.Attr<std::string>("data_layout"));
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "Y@GRAD", k[y_].shape));
    for (const Argument* each : {&k[scale_], &k[bias_], &variance}) {
      if (each->shape.Count() == shape_.channels && each->dtype == k[y_].dtype) continue;
      return k.Error(each->name, " (", DTypeName(each->dtype), each->shape, ") must hold one ",
                     DTypeName(k[y_].dtype), " for each of the ", shape_.channels, " channels of Y");
    }
    for (const Argument* each : {&k[dy_], &k[dx_], &k[dscale_], &k[dbias_]}) {
      if (!*each || each->dtype == k[y_].dtype) continue;
      return k.Error("element type of ", each->name, " (", DTypeName(each->dtype), ") must be that of Y (",
                     DTypeName(k[y_].dtype), ")");
    }
    PENSTOCK_ASSIGN_OR_RETURN(activation_, ActivationOf<T>(k));
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    if (!uses_running_ && shape_.PerChannel() <= 1) return ActivationAlone(k);
    for (Dim c = 0; c < shape_.channels; ++c) Differentiate(k, c);
    return OkStatus();
  }

 private:
  // The gradient of Y = activation(X).
  Status ActivationAlone(KernelRun& k) const {
    for (const Operand zero : std::initializer_list<Operand>{dscale_, dbias_}) {
      if (zero) std::ranges::fill(k[zero].template Span<T>(), T{0});
    }
    if (!dx_) return OkStatus();
    const T* const y = std::as_const(k[y_]).template Data<T>();
    const T* const dy = std::as_const(k[dy_]).template Data<T>();
    std::transform(y, y + k[y_].shape().Count(), dy, k[dx_].template Data<T>(),
                   [this](T result, T d) { return d * activation_.Slope(result); });
    return OkStatus();
  }
  void Differentiate(KernelRun& k, Dim c) const {
    const T* const y = std::as_const(k[y_]).template Data<T>();
    const T* const dy = std::as_const(k[dy_]).template Data<T>();
    const T scale = std::as_const(k[scale_]).template Data<T>()[c];
    const T bias = std::as_const(k[bias_]).template Data<T>()[c];
    const T variance = std::as_const(k[variance_]).template Data<T>()[c];
    const T r = uses_running_ ? T{1} / std::sqrt(variance + epsilon_) : variance;
    const auto slope_of = [&](Dim at) { return dy[at] * activation_.Slope(y[at]); };
    const auto normalised = [&](Dim at) {
      return scale == 0 ? T{0} : (activation_.Undone(y[at]) - bias) / scale;
    };
    T sum = 0, weighted = 0;
    shape_.EachElement(c, [&](Dim at) {
      sum += slope_of(at);
      weighted += slope_of(at) * normalised(at);
    });
    if (dbias_) k[dbias_].template Data<T>()[c] = sum;
    if (dscale_) k[dscale_].template Data<T>()[c] = weighted;
    if (!dx_) return;
    T* const dx = k[dx_].template Data<T>();
    const T count = static_cast<T>(shape_.PerChannel());
    shape_.EachElement(c, [&](Dim at) {
      const T through_moments = uses_running_ ? T{0} : (sum + normalised(at) * weighted) / count;
      dx[at] = scale * r * (slope_of(at) - through_moments);
    });
  }

  In<"Y"> y_;
  In<"Y@GRAD"> dy_;
  In<"Scale"> scale_;
  In<"Bias"> bias_;
  Out<"X@GRAD"> dx_;
  Out<"Scale@GRAD"> dscale_;
  Out<"Bias@GRAD"> dbias_;
  Operand variance_;
  ChannelShape shape_;
  bool uses_running_ = false;
  T epsilon_{};
  Activation<T> activation_;
};

}  // namespace

void RegisterInplaceAbn(OpRegistry& ops) {
  OpDef& op = ops.Add("inplace_abn")
                  .Doc("batch_norm followed by an activation; the result may overwrite the input.", kDoc);
  DeclareBatchNorm(op)
      .Attr("activation", "", "identity (or empty), leaky_relu or elu",
            OneOf({"", "identity", "leaky_relu", "elu"}))
      .Attr("alpha", 0.1f, "the parameter of leaky_relu and elu, above 0")
      .Attr("use_sync_bn", false, kNoEffect, OnlyValue(false))
      .Kernel<Cpu, InplaceAbnKernel, float, double>();
  op.Grad({.reads = {"Scale", "Bias"},
           .reads_outputs = {"Y", "SavedMean", "SavedVariance"},
           .yields = {"X", "Scale", "Bias"},
           .of = {"Y"},
           .apart = {"Scale", "Bias"}})
      .GradMadeBy(BatchNormGradReading("Y"))
      .GradKernel<Cpu, InplaceAbnGradKernel, float, double>();
  op.GradDef()
      .Input("Mean", "the running mean, if the forward op used it; not read", AnyType(), Optional())
      .Input("Variance", "the running variance, if the forward op used it", AnyType(), Optional())
      .InferShape([](InferContext& c) -> Status {
        for (const auto& [from, to] :
             {std::pair("Y", "X@GRAD"), {"Scale", "Scale@GRAD"}, {"Bias", "Bias@GRAD"}})
          PENSTOCK_RETURN_IF_ERROR(c.ShareAll(from, to));
        return OkStatus();
      })
      .KernelTypeFrom("Y");
}

}  // namespace penstock
