// batch_norm: normalises each channel to mean 0 and variance 1, then applies Scale and Bias.
#include "operators/nn/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "framework/op/op_registry.h"
#include "operators/common/fluid_attrs.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Y = (X - mean) / sqrt(variance + epsilon) * Scale + Bias, per channel

In training, mean and (biased) variance are those of the batch. SavedMean receives the mean and SavedVariance
receives 1 / sqrt(variance + epsilon). The running moments are updated:
MeanOut = momentum * Mean + (1 - momentum) * mean, and VarianceOut likewise. With is_test or use_global_stats,
Mean and Variance are used instead and do not change; SavedMean and SavedVariance are 0. With
trainable_statistics, is_test has no effect. If a batch has one element per channel, Y is X, as in Fluid.
X is [N, C], [N, C, ...] or, with data_layout NHWC, [N, ..., C].)";

template <typename Device, typename T>
class BatchNormKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    PENSTOCK_RETURN_IF_ERROR(a_.Prepare(k));
    if constexpr (std::is_same_v<T, float>) {
      if (a_.shape.channels_last) moments_.Prepare(k, a_.shape);
    }
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    if (CopiesOnly()) {
      if (k[a_.y].raw() != k[a_.x].raw()) std::memcpy(k[a_.y].raw(), k[a_.x].raw(), k[a_.x].bytes());
      a_.KeepRunning<T>(k);
      return OkStatus();
    }
    if constexpr (std::is_same_v<T, float>) {
      if (a_.shape.channels_last) {
        NormalizeRows(k);
      } else {
        NormalizePlanes(k);
      }
    } else {
      Normalize(k);
    }
    if (a_.uses_running) {
      a_.KeepRunning<T>(k);
    } else {
      a_.MoveRunning<T>(k);
    }
    return OkStatus();
  }

 private:
  bool CopiesOnly() const { return a_.shape.PerChannel() <= (a_.uses_running ? 0 : 1); }

  // Writes the moments of the batch to SavedMean and SavedVariance, which holds the variance until
  // MoveRunning converts it to the form that the gradient reads.
  void NormalizePlanes(KernelRun& k) const {
    const float* const x = std::as_const(k[a_.x]).template Data<float>();
    const vec::ChannelNorm norm = {std::as_const(k[a_.scale]).template Data<float>(),
                                   std::as_const(k[a_.bias]).template Data<float>(), a_.epsilon};
    float* const mean = k[a_.used_mean()].template Data<float>();
    float* const variance = k[a_.used_variance()].template Data<float>();
    float* const y = k[a_.y].template Data<float>();
    const vec::Planes planes = PlanesOf(a_.shape);
    EachPartOfChannels(a_.shape, [&](std::size_t first, std::size_t count) {
      if (a_.uses_running) {
        vec::NormalizeChannels(planes, first, count, x, mean, variance, norm, y);
      } else {
        vec::BatchNorm(planes, first, count, x, norm, mean, variance, y);
      }
    });
  }

  void NormalizeRows(KernelRun& k) const {
    const float* const x = std::as_const(k[a_.x]).template Data<float>();
    float* const y = k[a_.y].template Data<float>();
    const RowMoments::Numbers by = moments_.Run(k, a_);
    const std::size_t columns = MatrixOf(a_.shape).columns;
    EachPartOfRows(a_.shape, [&](std::size_t first, std::size_t rows) {
      const std::size_t at = first * columns;
      vec::NormalizeColumns({rows, columns}, x + at, by.mean, by.factor, by.bias, y + at);
    });
  }

  // f64, by plain loops. In training it writes mean and variance as the functions above.
  void Normalize(KernelRun& k) {
    const T* x = k[a_.x].template Data<T>();
    const T* scale = k[a_.scale].template Data<T>();
    const T* bias = k[a_.bias].template Data<T>();
    T* y = k[a_.y].template Data<T>();
    if (!a_.uses_running) a_.Measure<T>(k);
    const T* const means = std::as_const(k[a_.used_mean()]).template Data<T>();
    const T* const variances = std::as_const(k[a_.used_variance()]).template Data<T>();
    for (Dim c = 0; c < a_.shape.channels; ++c) {
      const T mean = means[c], variance = variances[c];
      const T factor = scale[c] / std::sqrt(variance + static_cast<T>(a_.epsilon));
      a_.shape.EachElement(c, [&](Dim at) { y[at] = (x[at] - mean) * factor + bias[c]; });
    }
  }

  BatchNormArguments a_;
  RowMoments moments_;
};

template <typename T>
void CopyChannels(KernelRun& k, const Operand& to, const T* from, Dim channels) {
  if (!to || k[to].template Data<T>() == from) return;  // in place
  std::copy_n(from, channels, k[to].template Data<T>());
}

}  // namespace

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

void RowMoments::Prepare(KernelSetup& k, const ChannelShape& s) {
  factors_ = k.Workspace(static_cast<std::size_t>(s.channels) * sizeof(float));
  sums_.Prepare(k, s, 1);
}

RowMoments::Numbers RowMoments::Run(KernelRun& k, const BatchNormArguments& a) const {
  if (!a.uses_running) Measure(k, a);
  const float* const scale = std::as_const(k[a.scale]).Data<float>();
  const float* const variance = std::as_const(k[a.used_variance()]).Data<float>();
  auto* const factors = reinterpret_cast<float*>(k.Workspace(factors_));
  for (Dim c = 0; c < a.shape.channels; ++c) factors[c] = scale[c] / std::sqrt(variance[c] + a.epsilon);
  return {std::as_const(k[a.used_mean()]).Data<float>(), factors, std::as_const(k[a.bias]).Data<float>()};
}

void RowMoments::Measure(KernelRun& k, const BatchNormArguments& a) const {
  const float* const x = std::as_const(k[a.x]).Data<float>();
  float* const mean = k[a.saved_mean].Data<float>();
  float* const variance = k[a.saved_variance].Data<float>();
  const auto [all, columns] = MatrixOf(a.shape);
  const float size = static_cast<float>(all);
  const float* sums = sums_.Run(k, [&](std::size_t first, std::size_t rows, float* own) {
    vec::AddRows(x + first * columns, columns, rows, columns, own);
  });
  for (std::size_t c = 0; c < columns; ++c) mean[c] = sums[c] / size;
  sums = sums_.Run(k, [&](std::size_t first, std::size_t rows, float* own) {
    vec::AddSquaredDistances({rows, columns}, x + first * columns, mean, own);
  });
  for (std::size_t c = 0; c < columns; ++c) variance[c] = sums[c] / size;
}

ChannelShape MakeChannelShape(const Shape& x, const std::string& data_layout) {
  ChannelShape s;
  s.channels_last = data_layout == "NHWC" && x.rank() > 2;
  s.images = x[0];
  s.channels = x[s.channels_last ? x.rank() - 1 : 1];
  s.points = s.channels_last ? x.Product(1, x.rank() - 1) : x.Product(2, x.rank());
  if (s.points == 1) return {.images = 1, .channels = s.channels, .points = s.images, .channels_last = true};
  return s;
}

Status BatchNormArguments::Prepare(KernelSetup& k) {
  k.Bind(x, scale, bias, mean, variance, momentum_tensor);
  k.Bind(y, mean_out, variance_out, saved_mean, saved_variance);
  for (const auto& [out, in] : {std::pair(&k[mean_out], &k[mean]), {&k[variance_out], &k[variance]}}) {
    for (const Operand other : std::initializer_list<Operand>{x, scale, bias, mean, variance}) {
      if (!*out || other.index != out->operand.index || other.index == in->operand.index) continue;
      return InvalidArgument("E-op-alias", k.op().type(), ": the new running moment ", out->name,
                             " must name ", in->name, " or a variable that is not read");
    }
  }
  epsilon = k.Attr<float>("epsilon");
  momentum = k.Attr<float>("momentum");
  uses_running = UsesRunningStatistics(k);
  shape = MakeChannelShape(k[x].shape, k.Attr<std::string>("data_layout"));
  if (uses_running || (mean_out && variance_out && saved_mean && saved_variance)) return OkStatus();
  return k.Error("training needs MeanOut, VarianceOut, SavedMean and SavedVariance");
}

template <typename T>
void BatchNormArguments::Measure(KernelRun& k) const {
  const T* const values = std::as_const(k[x]).template Data<T>();
  const T count = static_cast<T>(shape.PerChannel());
  for (Dim c = 0; c < shape.channels; ++c) {
    T sum = 0, squares = 0;
    shape.EachElement(c, [&](Dim at) { sum += values[at]; });
    const T average = sum / count;
    shape.EachElement(c, [&](Dim at) { squares += (values[at] - average) * (values[at] - average); });
    k[saved_mean].template Data<T>()[c] = average;
    k[saved_variance].template Data<T>()[c] = squares / count;
  }
}

template <typename T>
void BatchNormArguments::MoveRunning(KernelRun& k) const {
  const T kept = momentum_tensor ? k[momentum_tensor].template Data<T>()[0] : static_cast<T>(momentum);
  const T* old_mean = k[mean].template Data<T>();
  const T* old_variance = k[variance].template Data<T>();
  const T* of_batch = k[saved_mean].template Data<T>();
  T* saved = k[saved_variance].template Data<T>();
  T* new_mean = k[mean_out].template Data<T>();
  T* new_variance = k[variance_out].template Data<T>();
  for (Dim c = 0; c < shape.channels; ++c) {
    new_mean[c] = old_mean[c] * kept + of_batch[c] * (T(1) - kept);
    new_variance[c] = old_variance[c] * kept + saved[c] * (T(1) - kept);
    saved[c] = T(1) / std::sqrt(saved[c] + static_cast<T>(epsilon));
  }
}

template <typename T>
void BatchNormArguments::KeepRunning(KernelRun& k) const {
  CopyChannels(k, mean_out, static_cast<const T*>(k[mean].template Data<T>()), shape.channels);
  CopyChannels(k, variance_out, static_cast<const T*>(k[variance].template Data<T>()), shape.channels);
  for (const Operand saved : std::initializer_list<Operand>{saved_mean, saved_variance}) {
    if (saved) std::fill_n(k[saved].template Data<T>(), shape.channels, T(0));
  }
}

template void BatchNormArguments::Measure<float>(KernelRun&) const;
template void BatchNormArguments::Measure<double>(KernelRun&) const;
template void BatchNormArguments::MoveRunning<float>(KernelRun&) const;
template void BatchNormArguments::MoveRunning<double>(KernelRun&) const;
template void BatchNormArguments::KeepRunning<float>(KernelRun&) const;
template void BatchNormArguments::KeepRunning<double>(KernelRun&) const;

OpDef& DeclareBatchNorm(OpDef& op) {
  return op.Input("X", "[N, C], [N, C, ...] or [N, ..., C]", Floats())
      .Input("Scale", "the factor of each channel", SameTypeAs("X"))
      .Input("Bias", "the offset of each channel", SameTypeAs("X"))
      .Input("Mean", "the running mean of each channel", SameTypeAs("X"))
      .Input("Variance", "the running variance of each channel", SameTypeAs("X"))
      .Input("MomentumTensor", "replaces the attribute momentum; one element", SameTypeAs("X"), Optional())
      .Output("Y", "shaped like X", SameTypeAs("X"))
      .Output("MeanOut", "the updated running mean; the same variable as Mean", SameTypeAs("X"))
      .Output("VarianceOut", "the updated running variance; the same variable as Variance", SameTypeAs("X"))
      .Output("SavedMean", "the mean that was subtracted", SameTypeAs("X"), Intermediate() | Apart())
      .Output("SavedVariance", "1 / sqrt(variance + epsilon)", SameTypeAs("X"), Intermediate() | Apart())
      .Output("ReserveSpace", "used by a GPU backend; not written", SameTypeAs("X"), Optional())
      .Attr("is_test", false, "whether to use the running moments")
      .Attr("momentum", 0.9f, "the weight of the previous running moments")
      .Attr("epsilon", 1e-5f, "added to the variance", AtLeast(0))
      .Attr("data_layout", "NCHW", "the position of the channels in X", OneOf({"NCHW", "NHWC", "AnyLayout"}))
      .Attr("use_mkldnn", false, kNoEffect)
      .Attr("fuse_with_relu", false, kNoEffect, OnlyValue(false))
      .Attr("use_global_stats", false, "whether to use the running moments in training too")
      .Attr("trainable_statistics", false, "whether to train even with is_test")
      .InferShape(InferBatchNorm)
      .ChannelsLast(ByAttr("data_layout", "NHWC", {"X", "Y"}));
}

void RegisterBatchNorm(OpRegistry& ops) {
  OpDef& batch_norm =
      ops.Add("batch_norm")
          .Doc("Normalises each channel by its mean and variance, then scales and shifts it.", kDoc);
  DeclareBatchNorm(batch_norm).Kernel<Cpu, BatchNormKernel, float, double>().InPlace("Y", "X");
  AddBatchNormGrad(batch_norm);
}

}  // namespace penstock
