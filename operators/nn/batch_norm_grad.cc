// batch_norm_grad: the gradients of X, Scale and Bias.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "operators/common/require_shape.h"
#include "operators/nn/batch_norm.h"

namespace penstock {
namespace {

// With the moments of the batch:
//   r = 1 / sqrt(variance + eps)
//   dX = Scale * r / count * (count * dY - sum(dY) - (X - mean) * r * sum(dY * (X - mean) * r))
// with running ones, which do not depend on X: dX = Scale * r * dY. dScale and dBias are the two sums.
template <typename Device, typename T>
class BatchNormGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    x_ = k.Input("X");
    scale_ = k.Input("Scale");
    bias_ = k.Input("Bias");
    dy_ = k.Input("Y@GRAD");
    dx_ = k.Output("X@GRAD");
    dscale_ = k.Output("Scale@GRAD");
    dbias_ = k.Output("Bias@GRAD");
    epsilon_ = k.Attr<float>("epsilon");
    uses_running_ = k.Attr<bool>("use_global_stats");
    if (!uses_running_ && UsesRunningStatistics(k))
      return k.Error("a batch_norm with is_test has no gradient");
    mean_ = k.Input(uses_running_ ? "Mean" : "SavedMean");
    variance_ = k.Input(uses_running_ ? "Variance" : "SavedVariance");
    if (!mean_ || !variance_) return k.Error("use_global_stats needs Mean and Variance");
    if (x_.shape.rank() < 2 || x_.shape.rank() > 5)
      return k.Error("rank of X (", x_.shape.rank(), ", shape ", x_.shape, ") must be 2 to 5");
    shape_ = MakeChannelShape(x_.shape, k.Attr<std::string>("data_layout"));
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "Y@GRAD", x_.shape));
    for (const Operand* each : {&scale_, &bias_, &mean_, &variance_}) {
      if (!*each || (each->shape.Count() == shape_.channels && each->dtype == x_.dtype)) continue;
      return k.Error(each->name, " (", DTypeName(each->dtype), each->shape, ") must hold one ",
                     DTypeName(x_.dtype), " for each of the ", shape_.channels, " channels of X");
    }
    moment_ = k.Workspace(static_cast<std::size_t>(shape_.channels) * sizeof(T));
    if constexpr (std::is_same_v<T, float>) {
      if (CopiesOnly()) return OkStatus();
      return OnednnTry(k, [&] { AddPrimitive(k); });
    }
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    if (CopiesOnly()) return CopyDy(k);
    if constexpr (std::is_same_v<T, float>) {
      RecoverVariance(k);
      return steps_.Run(k);
    }
    Differentiate(k);
    return OkStatus();
  }

 private:
  bool CopiesOnly() const { return shape_.PerChannel() <= (uses_running_ ? 0 : 1); }

  void AddPrimitive(KernelSetup& k) {
    const dnnl::memory::desc data = ChannelDesc(shape_);
    const dnnl::memory::desc channel = OnednnPlain({shape_.channels});
    const auto flags = BatchNormFlags(uses_running_);
    const dnnl::batch_normalization_forward::primitive_desc forward(
        {dnnl::prop_kind::forward_training, data, epsilon_, flags}, OnednnAttr(), OnednnEngine());
    const dnnl::batch_normalization_backward::primitive_desc pd(
        {dnnl::prop_kind::backward, data, data, epsilon_, flags}, OnednnAttr(), OnednnEngine(), forward);
    // The primitive writes all three gradients; what nobody reads goes to scratch memory.
    const auto wanted = [&](const Operand& operand, const dnnl::memory::desc& desc) {
      return operand ? steps_.Tensor(operand, desc) : steps_.Scratch(k, desc);
    };
    steps_.Add(k, dnnl::batch_normalization_backward(pd), pd.scratchpad_desc(),
               {{DNNL_ARG_SRC, steps_.Tensor(x_, data)},
                {DNNL_ARG_SCALE, steps_.Tensor(scale_, channel)},
                {DNNL_ARG_SHIFT, steps_.Tensor(bias_, channel)},  // counted among its inputs, not used
                {DNNL_ARG_MEAN, steps_.Tensor(mean_, channel)},
                {DNNL_ARG_VARIANCE, steps_.InWorkspace(moment_, channel)},
                {DNNL_ARG_DIFF_DST, steps_.Tensor(dy_, data)},
                {DNNL_ARG_DIFF_SRC, wanted(dx_, data)},
                {DNNL_ARG_DIFF_SCALE, wanted(dscale_, channel)},
                {DNNL_ARG_DIFF_SHIFT, wanted(dbias_, channel)}});
  }

  // oneDNN wants the variance; SavedVariance holds 1 / sqrt(variance + epsilon).
  void RecoverVariance(KernelRun& k) {
    const T* given = k[variance_].template Data<T>();
    T* variance = reinterpret_cast<T*>(k.Workspace(moment_));
    for (Dim c = 0; c < shape_.channels; ++c) {
      variance[c] =
          uses_running_ ? given[c] : std::max(T(1) / (given[c] * given[c]) - static_cast<T>(epsilon_), T(0));
    }
  }

  void Differentiate(KernelRun& k) {
    const T* x = k[x_].template Data<T>();
    const T* dy = k[dy_].template Data<T>();
    const T* scale = k[scale_].template Data<T>();
    const T* means = k[mean_].template Data<T>();
    const T* variances = k[variance_].template Data<T>();
    T* dx = dx_ ? k[dx_].template Data<T>() : nullptr;
    const T count = static_cast<T>(shape_.PerChannel());
    for (Dim c = 0; c < shape_.channels; ++c) {
      const T mean = means[c];
      const T r = uses_running_ ? T(1) / std::sqrt(variances[c] + static_cast<T>(epsilon_)) : variances[c];
      T sum = 0, weighted = 0;
      shape_.EachElement(c, [&](Dim at) {
        sum += dy[at];
        weighted += dy[at] * (x[at] - mean) * r;
      });
      if (dbias_) k[dbias_].template Data<T>()[c] = sum;
      if (dscale_) k[dscale_].template Data<T>()[c] = weighted;
      if (dx == nullptr) continue;
      shape_.EachElement(c, [&](Dim at) {
        const T through_moments = uses_running_ ? T(0) : (sum + (x[at] - mean) * r * weighted) / count;
        dx[at] = scale[c] * r * (dy[at] - through_moments);
      });
    }
  }

  // The gradient of Y = X.
  Status CopyDy(KernelRun& k) {
    if (dx_) std::memcpy(k[dx_].raw(), k[dy_].raw(), k[dy_].bytes());
    for (const Operand& zero : {dscale_, dbias_}) {
      if (zero) std::fill_n(k[zero].template Data<T>(), shape_.channels, T(0));
    }
    return OkStatus();
  }

  Operand x_, scale_, bias_, dy_, dx_, dscale_, dbias_, mean_, variance_;
  float epsilon_ = 0;
  bool uses_running_ = false;
  ChannelShape shape_;
  WorkspaceId moment_;
  OnednnSequence steps_;
};

// The running moments are read by the gradient only if they were used: otherwise the op does not name them,
// as in Fluid.
Result<std::vector<Op>> MakeBatchNormGrad(const GradRequest& request) {
  const Op& forward = request.forward;
  Op grad("batch_norm_grad");
  for (const char* slot : {"X", "Scale", "Bias"}) grad.AddInput(slot, forward.Input(slot));
  for (const char* slot : {"SavedMean", "SavedVariance"}) grad.AddInput(slot, forward.Output(slot));
  if (forward.HasOutputSlot("ReserveSpace")) grad.AddInput("ReserveSpace", forward.Output("ReserveSpace"));
  if (forward.GetOr("use_global_stats", false)) {
    grad.AddInput("Mean", forward.Output("MeanOut"));
    grad.AddInput("Variance", forward.Output("VarianceOut"));
  }
  grad.AddInput("Y@GRAD", {request.grad_of(forward.OutputName("Y"))});
  for (const char* slot : {"X", "Scale", "Bias"}) {
    const std::string wanted = request.grad_of(forward.InputName(slot));
    grad.AddOutput(StrCat(slot, kGradSuffix),
                   wanted.empty() ? std::vector<std::string>() : std::vector{wanted});
  }
  for (const NamedAttr& attr : forward.attrs()) grad.Set(attr.name, attr.value);
  return std::vector<Op>{std::move(grad)};
}

}  // namespace

void AddBatchNormGrad(OpDef& batch_norm) {
  batch_norm
      .Grad({.reads = {"X", "Scale", "Bias"},
             .reads_outputs = {"SavedMean", "SavedVariance"},
             .yields = {"X", "Scale", "Bias"},
             .of = {"Y"}})
      .GradMadeBy(MakeBatchNormGrad)
      .GradKernel<Cpu, BatchNormGradKernel, float, double>()
      .GradDef()
      .Input("Mean", "the running mean, where it was used", AnyType(), Optional())
      .Input("Variance", "the running variance, where it was used", AnyType(), Optional())
      .Input("ReserveSpace", "of a GPU backend; not read", AnyType(), Optional())
      .KernelTypeFrom("X");
}

}  // namespace penstock
