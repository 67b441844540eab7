// batch_norm: each channel shifted and scaled to mean 0 and variance 1, then by Scale and Bias.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "framework/op/op_registry.h"
#include "operators/fluid_attrs.h"
#include "operators/nn/onednn.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Y = (X - mean) / sqrt(variance + epsilon) * Scale + Bias, per channel

Training takes mean and (biased) variance of the batch, leaves them in SavedMean and, as 1 / sqrt(variance + epsilon), in
SavedVariance, and moves the running ones: MeanOut = momentum * Mean + (1 - momentum) * mean, the same for VarianceOut.
With is_test or use_global_stats Mean and Variance are used as they are, and stay. trainable_statistics makes is_test
train all the same. A batch with one element per channel has no variance: Y is X then, as in Fluid.
X is [N, C], [N, C, ...] or, with data_layout NHWC, [N, ..., C].)";

// X as a batch of channels of points, whatever its rank.
struct ChannelShape {
  Dim images = 0, channels = 0, points = 0;
  bool channels_last = false;
  Dim At(Dim n, Dim c, Dim p) const {
    return channels_last ? (n * points + p) * channels + c : (n * channels + c) * points + p;
  }
  Dim PerChannel() const { return images * points; }
};

ChannelShape MakeChannelShape(const Shape& x, const std::string& data_layout) {
  ChannelShape s;
  s.channels_last = data_layout == "NHWC" && x.rank() > 2;
  s.images = x[0];
  s.channels = x[s.channels_last ? x.rank() - 1 : 1];
  s.points = s.channels_last ? x.Product(1, x.rank() - 1) : x.Product(2, x.rank());
  return s;
}

template <typename Context>
bool UsesRunningStatistics(const Context& c) {
  const bool test = c.template Attr<bool>("is_test") && !c.template Attr<bool>("trainable_statistics");
  return test || c.template Attr<bool>("use_global_stats");
}

Status InferBatchNorm(InferContext& c) {
  const Shape& x = c.ShapeOf("X");
  if (x.rank() < 2 || x.rank() > 5)
    return c.Error("rank of X (", x.rank(), ", shape ", x, ") must be 2 to 5");
  const Dim channels = MakeChannelShape(x, c.Attr<std::string>("data_layout")).channels;
  for (const char* slot : {"Scale", "Bias", "Mean", "Variance"}) {
    if (!Compatible(c.ShapeOf(slot), Shape{channels})) {
      return c.Error("shape of ", slot, " (", c.ShapeOf(slot), ") must be [", channels,
                     "], the channels of X");
    }
  }
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("Y", x));
  c.SetLodLevel("Y", c.Input("X").lod_level);
  for (const char* slot : {"MeanOut", "VarianceOut", "SavedMean", "SavedVariance"}) {
    PENSTOCK_RETURN_IF_ERROR(c.SetShape(slot, {channels}));
  }
  return OkStatus();
}

dnnl::memory::desc ChannelDesc(const ChannelShape& s) {
  const Dim image = s.channels * s.points;
  if (s.channels_last)
    return OnednnStrided({s.images, s.channels, s.points, 1}, {image, 1, s.channels, s.channels});
  return OnednnStrided({s.images, s.channels, s.points, 1}, {image, s.points, 1, 1});
}

dnnl::normalization_flags Flags(bool uses_running) {
  const auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
  return uses_running ? flags | dnnl::normalization_flags::use_global_stats : flags;
}

template <typename Device, typename T>
class BatchNormKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    x_ = k.Input("X");
    scale_ = k.Input("Scale");
    bias_ = k.Input("Bias");
    mean_ = k.Input("Mean");
    variance_ = k.Input("Variance");
    momentum_tensor_ = k.Input("MomentumTensor");
    y_ = k.Output("Y");
    mean_out_ = k.Output("MeanOut");
    variance_out_ = k.Output("VarianceOut");
    saved_mean_ = k.Output("SavedMean");
    saved_variance_ = k.Output("SavedVariance");
    epsilon_ = k.Attr<float>("epsilon");
    momentum_ = k.Attr<float>("momentum");
    uses_running_ = UsesRunningStatistics(k);
    shape_ = MakeChannelShape(x_.shape, k.Attr<std::string>("data_layout"));
    if (!uses_running_ && (!mean_out_ || !variance_out_ || !saved_mean_ || !saved_variance_)) {
      return k.Error("training needs MeanOut, VarianceOut, SavedMean and SavedVariance");
    }
    if constexpr (std::is_same_v<T, float>) {
      if (CopiesOnly()) return OkStatus();
      return OnednnTry(k, [&] { AddPrimitive(k); });
    }
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    if (CopiesOnly()) return CopyX(k);
    if constexpr (std::is_same_v<T, float>) {
      PENSTOCK_RETURN_IF_ERROR(steps_.Run(k));
    } else {
      Normalize(k);
    }
    return uses_running_ ? KeepRunning(k) : MoveRunning(k);
  }

 private:
  bool CopiesOnly() const { return !uses_running_ && shape_.PerChannel() == 1; }

  // SavedVariance holds the variance until MoveRunning turns it into what the gradient wants.
  void AddPrimitive(KernelSetup& k) {
    const dnnl::memory::desc data = ChannelDesc(shape_);
    const dnnl::memory::desc channel = OnednnPlain({shape_.channels});
    const auto kind = uses_running_ ? dnnl::prop_kind::forward_inference : dnnl::prop_kind::forward_training;
    const auto flags = Flags(uses_running_);
    const dnnl::batch_normalization_forward::primitive_desc pd({kind, data, epsilon_, flags}, OnednnAttr(),
                                                               OnednnEngine());
    steps_.Add(k, dnnl::batch_normalization_forward(pd), pd.scratchpad_desc(),
               {{DNNL_ARG_SRC, steps_.Tensor(x_, data)},
                {DNNL_ARG_SCALE, steps_.Tensor(scale_, channel)},
                {DNNL_ARG_SHIFT, steps_.Tensor(bias_, channel)},
                {DNNL_ARG_MEAN, steps_.Tensor(uses_running_ ? mean_ : saved_mean_, channel)},
                {DNNL_ARG_VARIANCE, steps_.Tensor(uses_running_ ? variance_ : saved_variance_, channel)},
                {DNNL_ARG_DST, steps_.Tensor(y_, data)}});
  }

  // f64, by plain loops. In training it leaves mean and variance where oneDNN would.
  void Normalize(KernelRun& k) {
    const T* x = k[x_].template Data<T>();
    const T* scale = k[scale_].template Data<T>();
    const T* bias = k[bias_].template Data<T>();
    T* y = k[y_].template Data<T>();
    for (Dim c = 0; c < shape_.channels; ++c) {
      T mean = k[uses_running_ ? mean_ : saved_mean_].template Data<T>()[c];
      T variance = k[uses_running_ ? variance_ : saved_variance_].template Data<T>()[c];
      if (!uses_running_) {
        const T count = static_cast<T>(shape_.PerChannel());
        T sum = 0, squares = 0;
        EachElement(c, [&](Dim at) { sum += x[at]; });
        mean = sum / count;
        EachElement(c, [&](Dim at) { squares += (x[at] - mean) * (x[at] - mean); });
        variance = squares / count;
        k[saved_mean_].template Data<T>()[c] = mean;
        k[saved_variance_].template Data<T>()[c] = variance;
      }
      const T factor = scale[c] / std::sqrt(variance + static_cast<T>(epsilon_));
      EachElement(c, [&](Dim at) { y[at] = (x[at] - mean) * factor + bias[c]; });
    }
  }

  template <typename Visit>
  void EachElement(Dim c, Visit&& visit) const {
    for (Dim n = 0; n < shape_.images; ++n) {
      for (Dim p = 0; p < shape_.points; ++p) visit(shape_.At(n, c, p));
    }
  }

  Status MoveRunning(KernelRun& k) {
    const T momentum =
        momentum_tensor_ ? k[momentum_tensor_].template Data<T>()[0] : static_cast<T>(momentum_);
    const T* mean = k[mean_].template Data<T>();
    const T* variance = k[variance_].template Data<T>();
    const T* saved_mean = k[saved_mean_].template Data<T>();
    T* saved_variance = k[saved_variance_].template Data<T>();
    T* mean_out = k[mean_out_].template Data<T>();
    T* variance_out = k[variance_out_].template Data<T>();
    for (Dim c = 0; c < shape_.channels; ++c) {
      mean_out[c] = mean[c] * momentum + saved_mean[c] * (T(1) - momentum);
      variance_out[c] = variance[c] * momentum + saved_variance[c] * (T(1) - momentum);
      saved_variance[c] = T(1) / std::sqrt(saved_variance[c] + static_cast<T>(epsilon_));
    }
    return OkStatus();
  }

  // The saved moments are not read after a test run; they are set so that no program sees old memory.
  Status KeepRunning(KernelRun& k) {
    const T* mean = k[mean_].template Data<T>();
    const T* variance = k[variance_].template Data<T>();
    CopyTo(k, mean_out_, mean);
    CopyTo(k, variance_out_, variance);
    CopyTo(k, saved_mean_, mean);
    if (!saved_variance_) return OkStatus();
    T* inverse = k[saved_variance_].template Data<T>();
    for (Dim c = 0; c < shape_.channels; ++c)
      inverse[c] = T(1) / std::sqrt(variance[c] + static_cast<T>(epsilon_));
    return OkStatus();
  }

  Status CopyX(KernelRun& k) {
    std::memcpy(k[y_].raw(), k[x_].raw(), k[x_].bytes());
    CopyTo(k, mean_out_, k[mean_].template Data<T>());
    CopyTo(k, variance_out_, k[variance_].template Data<T>());
    for (const Operand& saved : {saved_mean_, saved_variance_})
      std::fill_n(k[saved].template Data<T>(), shape_.channels, T(0));
    return OkStatus();
  }

  void CopyTo(KernelRun& k, const Operand& to, const T* from) const {
    if (!to || k[to].template Data<T>() == from) return;  // in place
    std::copy_n(from, shape_.channels, k[to].template Data<T>());
  }

  Operand x_, scale_, bias_, mean_, variance_, momentum_tensor_;
  Operand y_, mean_out_, variance_out_, saved_mean_, saved_variance_;
  float epsilon_ = 0, momentum_ = 0;
  bool uses_running_ = false;
  ChannelShape shape_;
  OnednnSequence steps_;
};

// With the moments of the batch:
//   dX = Scale * r / count * (count * dY - sum(dY) - (X - mean) * r * sum(dY * (X - mean) * r)),  r = 1 /
//   sqrt(variance + eps)
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
    shape_ = MakeChannelShape(x_.shape, k.Attr<std::string>("data_layout"));
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
  bool CopiesOnly() const { return !uses_running_ && shape_.PerChannel() == 1; }

  void AddPrimitive(KernelSetup& k) {
    const dnnl::memory::desc data = ChannelDesc(shape_);
    const dnnl::memory::desc channel = OnednnPlain({shape_.channels});
    const auto flags = Flags(uses_running_);
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
      EachElement(c, [&](Dim at) {
        sum += dy[at];
        weighted += dy[at] * (x[at] - mean) * r;
      });
      if (dbias_) k[dbias_].template Data<T>()[c] = sum;
      if (dscale_) k[dscale_].template Data<T>()[c] = weighted;
      if (dx == nullptr) continue;
      EachElement(c, [&](Dim at) {
        const T through_moments = uses_running_ ? T(0) : (sum + (x[at] - mean) * r * weighted) / count;
        dx[at] = scale[c] * r * (dy[at] - through_moments);
      });
    }
  }

  template <typename Visit>
  void EachElement(Dim c, Visit&& visit) const {
    for (Dim n = 0; n < shape_.images; ++n) {
      for (Dim p = 0; p < shape_.points; ++p) visit(shape_.At(n, c, p));
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

void RegisterBatchNorm(OpRegistry& ops) {
  ops.Add("batch_norm")
      .Doc("Each channel normalised by its mean and variance, then scaled and shifted.", kDoc)
      .Input("X", "[N, C], [N, C, ...] or [N, ..., C]", Floats())
      .Input("Scale", "factor of each channel", SameTypeAs("X"))
      .Input("Bias", "added to each channel", SameTypeAs("X"))
      .Input("Mean", "the running mean of each channel", SameTypeAs("X"))
      .Input("Variance", "the running variance of each channel", SameTypeAs("X"))
      .Input("MomentumTensor", "in place of the attribute momentum; one element", SameTypeAs("X"), Optional())
      .Output("Y", "shaped like X", SameTypeAs("X"))
      .Output("MeanOut", "the new running mean; the same variable as Mean", SameTypeAs("X"))
      .Output("VarianceOut", "the new running variance; the same variable as Variance", SameTypeAs("X"))
      .Output("SavedMean", "the mean that was used", SameTypeAs("X"), Intermediate())
      .Output("SavedVariance", "1 / sqrt(variance + epsilon)", SameTypeAs("X"), Intermediate())
      .Output("ReserveSpace", "of a GPU backend; not written", SameTypeAs("X"), Optional())
      .Attr("is_test", false, "whether the running moments are used")
      .Attr("momentum", 0.9f, "how much of the running moments stays")
      .Attr("epsilon", 1e-5f, "added to the variance", AtLeast(0))
      .Attr("data_layout", "NCHW", "where the channels of X are", OneOf({"NCHW", "NHWC", "AnyLayout"}))
      .Attr("use_mkldnn", false, kNoEffect)
      .Attr("fuse_with_relu", false, kNoEffect, OnlyValue(false))
      .Attr("use_global_stats", false, "whether the running moments are used in training too")
      .Attr("trainable_statistics", false, "whether is_test trains all the same")
      .InferShape(InferBatchNorm)
      .Layouts(LayoutRule::kPlain)
      .Kernel<Cpu, BatchNormKernel, float, double>()
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
