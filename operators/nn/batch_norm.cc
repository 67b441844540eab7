// batch_norm: each channel shifted and scaled to mean 0 and variance 1, then by Scale and Bias.
#include "operators/nn/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "framework/op/op_registry.h"
#include "operators/common/fluid_attrs.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Y = (X - mean) / sqrt(variance + epsilon) * Scale + Bias, per channel

Training takes mean and (biased) variance of the batch, leaves them in SavedMean and, as
1 / sqrt(variance + epsilon), in SavedVariance, and moves the running ones:
MeanOut = momentum * Mean + (1 - momentum) * mean, the same for VarianceOut. With is_test or use_global_stats
Mean and Variance are used as they are, and stay; SavedMean and SavedVariance are 0. trainable_statistics
makes is_test train all the same. A batch with one element per channel has no variance: Y is X then, as in
Fluid.
X is [N, C], [N, C, ...] or, with data_layout NHWC, [N, ..., C].)";

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
  c.ShareLod("X", "Y");
  for (const char* slot : {"MeanOut", "VarianceOut", "SavedMean", "SavedVariance"}) {
    PENSTOCK_RETURN_IF_ERROR(c.SetShape(slot, {channels}));
  }
  return OkStatus();
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
    for (const auto& [out, in] : {std::pair(mean_out_, mean_), {variance_out_, variance_}}) {
      for (const Operand& other : {x_, scale_, bias_, mean_, variance_}) {
        if (!out || other.index != out.index || other.index == in.index) continue;
        return InvalidArgument("E-op-alias", "batch_norm: the new running moment ", out.name, " must name ",
                               in.name, " or a variable that is not read");
      }
    }
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
  bool CopiesOnly() const { return shape_.PerChannel() <= (uses_running_ ? 0 : 1); }

  // SavedVariance holds the variance until MoveRunning turns it into what the gradient wants.
  void AddPrimitive(KernelSetup& k) {
    const dnnl::memory::desc data = ChannelDesc(shape_);
    const dnnl::memory::desc channel = OnednnPlain({shape_.channels});
    const auto kind = uses_running_ ? dnnl::prop_kind::forward_inference : dnnl::prop_kind::forward_training;
    const auto flags = BatchNormFlags(uses_running_);
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
        shape_.EachElement(c, [&](Dim at) { sum += x[at]; });
        mean = sum / count;
        shape_.EachElement(c, [&](Dim at) { squares += (x[at] - mean) * (x[at] - mean); });
        variance = squares / count;
        k[saved_mean_].template Data<T>()[c] = mean;
        k[saved_variance_].template Data<T>()[c] = variance;
      }
      const T factor = scale[c] / std::sqrt(variance + static_cast<T>(epsilon_));
      shape_.EachElement(c, [&](Dim at) { y[at] = (x[at] - mean) * factor + bias[c]; });
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

  // There are no moments of the batch then: nobody reads the saved ones.
  Status KeepRunning(KernelRun& k) {
    CopyTo(k, mean_out_, k[mean_].template Data<T>());
    CopyTo(k, variance_out_, k[variance_].template Data<T>());
    for (const Operand* saved : {&saved_mean_, &saved_variance_}) {
      if (*saved) std::fill_n(k[*saved].template Data<T>(), shape_.channels, T(0));
    }
    return OkStatus();
  }

  Status CopyX(KernelRun& k) {
    std::memcpy(k[y_].raw(), k[x_].raw(), k[x_].bytes());
    return KeepRunning(k);
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

}  // namespace

ChannelShape MakeChannelShape(const Shape& x, const std::string& data_layout) {
  ChannelShape s;
  s.channels_last = data_layout == "NHWC" && x.rank() > 2;
  s.images = x[0];
  s.channels = x[s.channels_last ? x.rank() - 1 : 1];
  s.points = s.channels_last ? x.Product(1, x.rank() - 1) : x.Product(2, x.rank());
  return s;
}

dnnl::memory::desc ChannelDesc(const ChannelShape& s) {
  const Dim image = s.channels * s.points;
  if (s.channels_last)
    return OnednnStrided({s.images, s.channels, s.points, 1}, {image, 1, s.channels, s.channels});
  return OnednnStrided({s.images, s.channels, s.points, 1}, {image, s.points, 1, 1});
}

dnnl::normalization_flags BatchNormFlags(bool uses_running) {
  const auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
  return uses_running ? flags | dnnl::normalization_flags::use_global_stats : flags;
}

void RegisterBatchNorm(OpRegistry& ops) {
  OpDef& batch_norm =
      ops.Add("batch_norm")
          .Doc("Each channel normalised by its mean and variance, then scaled and shifted.", kDoc)
          .Input("X", "[N, C], [N, C, ...] or [N, ..., C]", Floats())
          .Input("Scale", "factor of each channel", SameTypeAs("X"))
          .Input("Bias", "added to each channel", SameTypeAs("X"))
          .Input("Mean", "the running mean of each channel", SameTypeAs("X"))
          .Input("Variance", "the running variance of each channel", SameTypeAs("X"))
          .Input("MomentumTensor", "in place of the attribute momentum; one element", SameTypeAs("X"),
                 Optional())
          .Output("Y", "shaped like X", SameTypeAs("X"))
          .Output("MeanOut", "the new running mean; the same variable as Mean", SameTypeAs("X"))
          .Output("VarianceOut", "the new running variance; the same variable as Variance", SameTypeAs("X"))
          .Output("SavedMean", "the mean that was used", SameTypeAs("X"), Intermediate() | Apart())
          .Output("SavedVariance", "1 / sqrt(variance + epsilon)", SameTypeAs("X"), Intermediate() | Apart())
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
          .Kernel<Cpu, BatchNormKernel, float, double>();
  AddBatchNormGrad(batch_norm);
}

}  // namespace penstock
