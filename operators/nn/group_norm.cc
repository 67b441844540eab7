// group_norm and instance_norm: normalise groups of channels, or single channels, of each image.
#include "framework/vector/group_norm.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "framework/op/op_registry.h"
#include "operators/common/parallel.h"
#include "operators/common/require_shape.h"
#include "operators/nn/instance_norm_second_order.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Y = (X - mean) / sqrt(variance + epsilon) * Scale + Bias

Mean and (biased) variance are computed over one group of channels of one image. In group_norm a group has
ceil(channels / groups) channels, in instance_norm one. Scale and Bias have one element per channel; if absent
they are 1 and 0. group_norm stores the variances in Variance; instance_norm stores
1 / sqrt(variance + epsilon) in SavedVariance. The gradient of group_norm recovers the normalised X from Y;
where Scale is 0, it uses 0.

Wu, He: "Group normalization", ECCV 2018. Ulyanov, Vedaldi, Lempitsky: "Instance normalization: the missing
ingredient for fast stylization", 2016.)";

// The elements of a group, with X viewed as images x channels x points.
struct NormGroups {
  Dim images = 0, channels = 0, points = 0, groups = 1, group_size = 1;
  bool channels_last = false;

  static NormGroups Of(const Shape& x, bool channels_last, Dim groups) {
    NormGroups g;
    g.channels_last = channels_last;
    g.images = x[0];
    g.channels = x[channels_last ? x.rank() - 1 : 1];
    g.points = channels_last ? x.Product(1, x.rank() - 1) : x.Product(2, x.rank());
    g.groups = groups < 0 ? g.channels : groups;
    if (g.groups > 0) g.group_size = (g.channels - 1) / g.groups + 1;
    return g;
  }
  // Calls part(first, count) for consecutive groups of each image, divided among threads.
  template <typename Part>
  void EachPart(const Part& part) const {
    constexpr double kElementNs = 0.3;
    ForRows(groups, kElementNs * static_cast<double>(images * group_size * points), [&](Dim begin, Dim end) {
      part(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
    });
  }
  vec::ChannelGroups ForVectors() const {
    const auto size = [](Dim dim) { return static_cast<std::size_t>(dim); };
    return {size(images), size(channels), size(points), size(groups), size(group_size)};
  }
  Dim Size(Dim g) const { return std::clamp<Dim>(channels - g * group_size, 0, group_size) * points; }
  // Calls visit(element, channel) for each element of group g of an image.
  template <typename Visit>
  void ForEach(Dim image, Dim g, Visit visit) const {
    const Dim end = std::min((g + 1) * group_size, channels);
    for (Dim c = g * group_size; c < end; ++c) {
      for (Dim p = 0; p < points; ++p)
        visit(channels_last ? (image * points + p) * channels + c : (image * channels + c) * points + p, c);
    }
  }
};

// Reads the attributes of the op; in instance_norm each channel is a group.
template <typename Context>
Result<NormGroups> MakeNormGroups(const Context& c, const Shape& x) {
  if (x.rank() < 2) return c.Error("rank of X (", x.rank(), ", shape ", x, ") must be above 1");
  if (StartsWith(c.op().type(), "instance")) return NormGroups::Of(x, false, -1);
  const Dim groups = c.template Attr<std::int32_t>("groups");
  const NormGroups made = NormGroups::Of(x, c.template Attr<std::string>("data_layout") == "NHWC", groups);
  if (made.channels == kUnknownDim || groups <= made.channels) return made;
  return c.Error("groups (", groups, ") must be at most the number of channels of X (", made.channels, ")");
}

Status InferGroupNorm(InferContext& c) {
  const Shape& x = c.ShapeOf("X");
  PENSTOCK_ASSIGN_OR_RETURN(const NormGroups g, MakeNormGroups(c, x));
  for (const char* slot : {"Scale", "Bias"}) {
    if (c.HasInput(slot) && !Compatible(c.ShapeOf(slot), Shape{g.channels}))
      return c.Error("shape of ", slot, " (", c.ShapeOf(slot), ") must be [", g.channels,
                     "], the channels of X");
  }
  const bool single = StartsWith(c.op().type(), "instance");
  const Dim lines =
      g.images == kUnknownDim || g.channels == kUnknownDim ? kUnknownDim : g.images * g.channels;
  const Shape moments = single ? Shape{lines} : Shape{g.images, g.groups};
  PENSTOCK_RETURN_IF_ERROR(c.SetShape(single ? "SavedMean" : "Mean", moments));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape(single ? "SavedVariance" : "Variance", moments));
  return c.ShareAll("X", "Y");
}

// 1 / sqrt(variance + epsilon) of each.
void InvertDeviations(std::span<const float> variances, float epsilon, float* inverse_deviations) {
  std::ranges::transform(variances, inverse_deviations,
                         [epsilon](float variance) { return 1.0f / std::sqrt(variance + epsilon); });
}

template <typename Device, typename T>
class GroupNormKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, scale_, bias_, y_);
    single_ = StartsWith(k.op().type(), "instance");
    const char *mean = single_ ? "SavedMean" : "Mean", *variance = single_ ? "SavedVariance" : "Variance";
    PENSTOCK_RETURN_IF_ERROR(RequireOutput(k, mean));
    PENSTOCK_RETURN_IF_ERROR(RequireOutput(k, variance));
    mean_ = k.Output(mean);
    variance_ = k.Output(variance);
    epsilon_ = static_cast<double>(k.Attr<float>("epsilon"));
    PENSTOCK_ASSIGN_OR_RETURN(groups_, MakeNormGroups(k, k[x_].shape));
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    const T* const x = k[x_].template Data<T>();
    const T* const scale = scale_ ? std::as_const(k[scale_]).template Data<T>() : nullptr;
    const T* const bias = bias_ ? std::as_const(k[bias_]).template Data<T>() : nullptr;
    T* const y = k[y_].template Data<T>();
    T* mean = k[mean_].template Data<T>();
    T* variance = k[variance_].template Data<T>();
    if constexpr (std::is_same_v<T, float>) {
      if (!groups_.channels_last) {
        const auto epsilon = static_cast<float>(epsilon_);
        groups_.EachPart([&](std::size_t first, std::size_t count) {
          vec::NormalizeGroups(groups_.ForVectors(), first, count, x, {scale, bias, epsilon}, mean, variance,
                               y);
        });
        if (single_) InvertDeviations(k[variance_].template Span<float>(), epsilon, variance);
        return OkStatus();
      }
    }
    for (Dim n = 0; n < groups_.images; ++n) {
      for (Dim g = 0; g < groups_.groups; ++g, ++mean, ++variance) {
        const double size = static_cast<double>(std::max<Dim>(groups_.Size(g), 1));
        double sum = 0, squares = 0;
        groups_.ForEach(n, g, [&](Dim at, Dim) { sum += static_cast<double>(x[at]); });
        const double middle = sum / size;
        groups_.ForEach(n, g, [&](Dim at, Dim) {
          const double distance = static_cast<double>(x[at]) - middle;
          squares += distance * distance;
        });
        const double factor = 1 / std::sqrt(squares / size + epsilon_);
        *mean = static_cast<T>(middle);
        *variance = static_cast<T>(single_ ? factor : squares / size);
        groups_.ForEach(n, g, [&](Dim at, Dim c) {
          const T normal = static_cast<T>((static_cast<double>(x[at]) - middle) * factor);
          y[at] = normal * (scale ? scale[c] : T{1}) + (bias ? bias[c] : T{0});
        });
      }
    }
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Scale"> scale_;
  In<"Bias"> bias_;
  Out<"Y"> y_;
  Operand mean_, variance_;
  bool single_ = false;
  double epsilon_ = 0;
  NormGroups groups_;
};

// dX = Scale / deviation * (dY - mean(dY) - normal * mean(dY * normal)), with Scale inside of the means.
template <typename Device, typename T>
class GroupNormGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    single_ = StartsWith(k.op().type(), "instance");
    const Argument& x = k.Input(single_ ? "X" : "Y");
    // The gradient of group_norm does not need the means.
    const Argument& mean = k.Input(single_ ? "SavedMean" : "Variance");
    const Argument& variance = k.Input(single_ ? "SavedVariance" : "Variance");
    x_ = x;
    mean_ = mean;
    variance_ = variance;
    k.Bind(scale_, bias_, dy_, dx_, dscale_, dbias_);
    epsilon_ = static_cast<double>(k.Attr<float>("epsilon"));
    PENSTOCK_ASSIGN_OR_RETURN(groups_, MakeNormGroups(k, x.shape));
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "Y@GRAD", x.shape));
    for (const char* slot : {"Scale", "Bias"}) {
      if (k.Input(slot)) PENSTOCK_RETURN_IF_ERROR(RequireShape(k, slot, {groups_.channels}));
    }
    for (const char* slot : {"X", "Y", "SavedMean", "SavedVariance", "Variance", "Scale", "Bias"}) {
      if (k.Input(slot)) PENSTOCK_RETURN_IF_ERROR(RequireType(k, slot, k[dy_].dtype));
    }
    const Dim count = groups_.images * groups_.groups;
    inverse_deviations_ = k.Workspace(static_cast<std::size_t>(count) * sizeof(float));
    if (mean.shape.Count() == count && variance.shape.Count() == count) return OkStatus();
    return k.Error("the moments (", mean.shape, " and ", variance.shape, ") must have ", count, " elements");
  }

  Status Run(KernelRun& k) override {
    const T* const dy = std::as_const(k[dy_]).template Data<T>();
    const T* const scale = scale_ ? std::as_const(k[scale_]).template Data<T>() : nullptr;
    T* const dx = dx_ ? k[dx_].template Data<T>() : nullptr;
    if constexpr (std::is_same_v<T, float>) {
      if (!groups_.channels_last) {
        DifferentiatePlanes(k);
        return OkStatus();
      }
    }
    T* const dscale = Cleared(k, dscale_);
    T* const dbias = Cleared(k, dbias_);
    for (Dim n = 0; n < groups_.images; ++n) {
      for (Dim g = 0; g < groups_.groups; ++g) {
        const Dim moment = n * groups_.groups + g;
        const double size = static_cast<double>(std::max<Dim>(groups_.Size(g), 1));
        const auto slope = [&](Dim at, Dim c) {
          return static_cast<double>(dy[at]) * (scale ? static_cast<double>(scale[c]) : 1.0);
        };
        double sum = 0, along = 0;
        groups_.ForEach(n, g, [&](Dim at, Dim c) {
          const double normal = Normal(k, at, c, moment);
          sum += slope(at, c);
          along += slope(at, c) * normal;
          if (dscale != nullptr) dscale[c] += static_cast<T>(static_cast<double>(dy[at]) * normal);
          if (dbias != nullptr) dbias[c] += dy[at];
        });
        if (dx == nullptr) continue;
        const double factor = Factor(k, moment);
        groups_.ForEach(n, g, [&](Dim at, Dim c) {
          const double centred = slope(at, c) - (sum + Normal(k, at, c, moment) * along) / size;
          dx[at] = static_cast<T>(factor * centred);
        });
      }
    }
    return OkStatus();
  }

 private:
  void DifferentiatePlanes(KernelRun& k) const {
    const auto in = [&](const Operand& operand) {
      return operand ? std::as_const(k[operand]).template Data<float>() : nullptr;
    };
    const auto out = [&](const Operand& operand) {
      return operand ? k[operand].template Data<float>() : nullptr;
    };
    const float* inverse_deviation = in(variance_);
    if (!single_) {
      auto* const computed = reinterpret_cast<float*>(k.Workspace(inverse_deviations_));
      InvertDeviations(std::as_const(k[variance_]).template Span<float>(), static_cast<float>(epsilon_),
                       computed);
      inverse_deviation = computed;
    }
    const vec::GroupNormGrad grad = {.x = in(x_),
                                     .dy = in(dy_),
                                     .scale = in(scale_),
                                     .bias = in(bias_),
                                     .mean = single_ ? in(mean_) : nullptr,
                                     .inverse_deviation = inverse_deviation,
                                     .dx = out(dx_),
                                     .dscale = out(dscale_),
                                     .dbias = out(dbias_)};
    groups_.EachPart([&](std::size_t first, std::size_t count) {
      vec::DifferentiateGroups(groups_.ForVectors(), first, count, grad);
    });
  }
  T* Cleared(KernelRun& k, const Operand& operand) const {
    if (!operand) return nullptr;
    std::ranges::fill(k[operand].template Span<T>(), T{0});
    return k[operand].template Data<T>();
  }
  double Factor(KernelRun& k, Dim moment) const {
    const double saved = static_cast<double>(std::as_const(k[variance_]).template Data<T>()[moment]);
    return single_ ? saved : 1 / std::sqrt(saved + epsilon_);
  }
  // Returns an element of X before Scale and Bias were applied.
  double Normal(KernelRun& k, Dim at, Dim c, Dim moment) const {
    const double value = static_cast<double>(std::as_const(k[x_]).template Data<T>()[at]);
    if (single_) {
      const double mean = static_cast<double>(std::as_const(k[mean_]).template Data<T>()[moment]);
      return (value - mean) * Factor(k, moment);
    }
    const double bias = bias_ ? static_cast<double>(std::as_const(k[bias_]).template Data<T>()[c]) : 0.0;
    const double scale = scale_ ? static_cast<double>(std::as_const(k[scale_]).template Data<T>()[c]) : 1.0;
    return scale == 0 ? 0 : (value - bias) / scale;
  }

  In<"Scale"> scale_;
  In<"Bias"> bias_;
  In<"Y@GRAD"> dy_;
  Out<"X@GRAD"> dx_;
  Out<"Scale@GRAD"> dscale_;
  Out<"Bias@GRAD"> dbias_;
  Operand x_, mean_, variance_;
  WorkspaceId inverse_deviations_;
  bool single_ = false;
  double epsilon_ = 0;
  NormGroups groups_;
};

Status InferGroupNormGrad(InferContext& c) {
  const char* const whole = StartsWith(c.op().type(), "instance") ? "X" : "Y";
  PENSTOCK_ASSIGN_OR_RETURN(const NormGroups g, MakeNormGroups(c, c.ShapeOf(whole)));
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll(whole, "X@GRAD"));
  for (const char* slot : {"Scale@GRAD", "Bias@GRAD"}) {
    c.SetDType(slot, c.DTypeOf(whole));
    PENSTOCK_RETURN_IF_ERROR(c.SetShape(slot, {g.channels}));
  }
  return OkStatus();
}

}  // namespace

void RegisterGroupNorm(OpRegistry& ops) {
  ops.Add("group_norm")
      .Doc("Normalises groups of channels of each image by their mean and variance.", kDoc)
      .Input("X", "[N, C, ...] or [N, ..., C]", Floats())
      .Input("Scale", "the factor of each channel", SameTypeAs("X"), Optional())
      .Input("Bias", "the offset of each channel", SameTypeAs("X"), Optional())
      .Output("Y", "shaped like X", SameTypeAs("X"), Apart())
      .Output("Mean", "[N, groups], the means", SameTypeAs("X"), Intermediate() | Apart())
      .Output("Variance", "[N, groups], the variances", SameTypeAs("X"), Intermediate() | Apart())
      .Attr("epsilon", 1e-5f, "added to the variance", AtLeast(0))
      .RequiredAttr("groups", AttrKind::kInt, "the number of groups", AtLeast(1))
      .Attr("data_layout", "NCHW", "the position of the channels in X", OneOf({"NCHW", "NHWC"}))
      .InferShape(InferGroupNorm)
      .Kernel<Cpu, GroupNormKernel, float, double>()
      .Grad({.reads = {"Bias", "Scale"},
             .reads_outputs = {"Y", "Variance"},
             .yields = {"X", "Scale", "Bias"},
             .apart = {"X", "Scale", "Bias"}})
      .GradKernel<Cpu, GroupNormGradKernel, float, double>()
      .GradDef()
      .KernelTypeFrom("Y@GRAD")
      .InferShape(InferGroupNormGrad);
  OpDef& instance_norm = ops.Add("instance_norm");
  instance_norm.Doc("Normalises each channel of each image by its mean and variance.", kDoc)
      .Input("X", "[N, C, ...]", Floats())
      .Input("Scale", "the factor of each channel", SameTypeAs("X"))
      .Input("Bias", "the offset of each channel", SameTypeAs("X"))
      .Output("Y", "shaped like X", SameTypeAs("X"), Apart())
      .Output("SavedMean", "[N * C], the means", SameTypeAs("X"), Intermediate() | Apart())
      .Output("SavedVariance", "[N * C], 1 / sqrt(variance + epsilon)", SameTypeAs("X"),
              Intermediate() | Apart())
      .Attr("epsilon", 1e-5f, "added to the variance", AtLeast(0))
      .InferShape(InferGroupNorm)
      .Kernel<Cpu, GroupNormKernel, float, double>()
      .Grad({.reads = {"X", "Scale"},
             .reads_outputs = {"SavedMean", "SavedVariance"},
             .yields = {"X", "Scale", "Bias"},
             .apart = {"X", "Scale", "Bias"}})
      .GradKernel<Cpu, GroupNormGradKernel, float, double>()
      .GradDef()
      .InferShape(InferGroupNormGrad);
  AddInstanceNormSecondOrder(ops, instance_norm);
}

}  // namespace penstock
