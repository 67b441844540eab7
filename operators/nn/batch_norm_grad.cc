// batch_norm_grad: the gradients of X, Scale and Bias.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "operators/common/grad_args.h"
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
    PENSTOCK_RETURN_IF_ERROR(a_.Prepare(k));
    if constexpr (std::is_same_v<T, float>) slopes_.Prepare(k, a_.shape);
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    if (a_.CopiesOnly()) return CopyDy(k);
    if constexpr (std::is_same_v<T, float>) {
      if (a_.shape.channels_last) {
        DifferentiateRows(k);
      } else {
        DifferentiatePlanes(k);
      }
    } else {
      Differentiate(k);
    }
    return OkStatus();
  }

 private:
  void DifferentiatePlanes(KernelRun& k) const {
    const vec::ChannelNormGrad grad = slopes_.Arguments(k, a_);
    EachPartOfChannels(a_.shape, [&](std::size_t first, std::size_t count) {
      vec::BatchNormGrad(PlanesOf(a_.shape), first, count, grad);
    });
  }

  void DifferentiateRows(KernelRun& k) const {
    const vec::ChannelNormGrad g = slopes_.Arguments(k, a_);
    const std::size_t columns = MatrixOf(a_.shape).columns;
    const vec::ColumnSlopes by =
        slopes_.OfRows(k, g, [&](std::size_t first, std::size_t rows, float* sums, float* alongs) {
          const std::size_t at = first * columns;
          vec::AddSlopes({rows, columns}, g.x + at, g.dy + at, g.mean, sums, alongs);
        });
    if (g.dx == nullptr) return;
    EachPartOfRows(a_.shape, [&](std::size_t first, std::size_t rows) {
      const std::size_t at = first * columns;
      vec::DifferentiateColumns({rows, columns}, g.x + at, g.dy + at, by, g.dx + at);
    });
  }

  void Differentiate(KernelRun& k) {
    const T* x = k[a_.x].template Data<T>();
    const T* dy = k[a_.dy].template Data<T>();
    const T* scale = k[a_.scale].template Data<T>();
    const T* means = k[a_.mean].template Data<T>();
    const T* variances = k[a_.variance].template Data<T>();
    T* dx = a_.dx ? k[a_.dx].template Data<T>() : nullptr;
    const T count = static_cast<T>(a_.shape.PerChannel());
    for (Dim c = 0; c < a_.shape.channels; ++c) {
      const T mean = means[c];
      const T r =
          a_.uses_running ? T(1) / std::sqrt(variances[c] + static_cast<T>(a_.epsilon)) : variances[c];
      T sum = 0, weighted = 0;
      a_.shape.EachElement(c, [&](Dim at) {
        sum += dy[at];
        weighted += dy[at] * (x[at] - mean) * r;
      });
      if (a_.dbias) k[a_.dbias].template Data<T>()[c] = sum;
      if (a_.dscale) k[a_.dscale].template Data<T>()[c] = weighted;
      if (dx == nullptr) continue;
      a_.shape.EachElement(c, [&](Dim at) {
        const T through_moments = a_.uses_running ? T(0) : (sum + (x[at] - mean) * r * weighted) / count;
        dx[at] = scale[c] * r * (dy[at] - through_moments);
      });
    }
  }

  // The gradient of Y = X.
  Status CopyDy(KernelRun& k) {
    if (a_.dx && k[a_.dx].raw() != k[a_.dy].raw())
      std::memcpy(k[a_.dx].raw(), k[a_.dy].raw(), k[a_.dy].bytes());
    for (const Operand zero : std::initializer_list<Operand>{a_.dscale, a_.dbias}) {
      if (zero) std::fill_n(k[zero].template Data<T>(), a_.shape.channels, T(0));
    }
    return OkStatus();
  }

  BatchNormGradArguments a_;
  ChannelSlopes slopes_;
};

}  // namespace

void ChannelSlopes::Prepare(KernelSetup& k, const ChannelShape& s) {
  channels_ = s.channels;
  rows_ = s.images * s.points;
  numbers_ = k.Workspace(static_cast<std::size_t>(channels_ * kNumbers) * sizeof(float));
  if (s.channels_last) sums_.Prepare(k, s, 2);
}

vec::ChannelNormGrad ChannelSlopes::Arguments(KernelRun& k, const BatchNormGradArguments& a) const {
  const auto in = [&](const Operand& operand) { return std::as_const(k[operand]).Data<float>(); };
  const auto out = [&](const Operand& operand) { return operand ? k[operand].Data<float>() : nullptr; };
  const float* inverse_deviation = in(a.variance);
  if (a.uses_running) {
    float* const computed = Numbers(k, 0);
    for (Dim c = 0; c < channels_; ++c) computed[c] = 1.0f / std::sqrt(inverse_deviation[c] + a.epsilon);
    inverse_deviation = computed;
  }
  return {.x = in(a.x),
          .dy = in(a.dy),
          .scale = in(a.scale),
          .mean = in(a.mean),
          .inverse_deviation = inverse_deviation,
          .moments_of_x = !a.uses_running,
          .dx = out(a.dx),
          .dscale = out(a.dscale),
          .dbias = out(a.dbias)};
}

vec::ColumnSlopes ChannelSlopes::Finish(KernelRun& k, const vec::ChannelNormGrad& g,
                                        const float* sums) const {
  const float* const alongs = sums + channels_;
  const float size = static_cast<float>(rows_);
  float *const steep = Numbers(k, 1), *const along = Numbers(k, 2), *const constant = Numbers(k, 3);
  float* const mean = Numbers(k, 0);
  for (Dim c = 0; c < channels_; ++c) {
    // All of the channel's numbers are read here, before gradients that may have their memory are written.
    const float r = g.inverse_deviation[c], weighted = alongs[c] * r;
    steep[c] = g.scale[c] * r;
    along[c] = g.moments_of_x ? -steep[c] * (weighted / size) * r : 0;
    constant[c] = g.moments_of_x ? -steep[c] * (sums[c] / size) : 0;
    mean[c] = g.mean[c];
    if (g.dbias != nullptr) g.dbias[c] = sums[c];
    if (g.dscale != nullptr) g.dscale[c] = weighted;
  }
  return {mean, steep, along, constant};
}

Status BatchNormGradArguments::Prepare(KernelSetup& k) {
  k.Bind(x, scale, bias, dy, dx, dscale, dbias);
  epsilon = k.Attr<float>("epsilon");
  uses_running = k.Attr<bool>("use_global_stats");
  if (!uses_running && UsesRunningStatistics(k)) return k.Error("a batch_norm with is_test has no gradient");
  const Argument& mean_given = k.Input(uses_running ? "Mean" : "SavedMean");
  const Argument& variance_given = k.Input(uses_running ? "Variance" : "SavedVariance");
  mean = mean_given;
  variance = variance_given;
  if (!mean || !variance) return k.Error("use_global_stats needs Mean and Variance");
  const Argument& images = k[x];
  if (images.shape.rank() < 2 || images.shape.rank() > 5)
    return k.Error("rank of X (", images.shape.rank(), ", shape ", images.shape, ") must be 2 to 5");
  shape = MakeChannelShape(images.shape, k.Attr<std::string>("data_layout"));
  PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "Y@GRAD", images.shape));
  for (const Argument* each : {&k[scale], &k[bias], &mean_given, &variance_given}) {
    if (!*each || (each->shape.Count() == shape.channels && each->dtype == images.dtype)) continue;
    return k.Error(each->name, " (", DTypeName(each->dtype), each->shape, ") must hold one ",
                   DTypeName(images.dtype), " for each of the ", shape.channels, " channels of X");
  }
  return OkStatus();
}

GradMaker BatchNormGradReading(const char* kept) {
  return [kept](const GradRequest& request) -> Result<std::vector<Op>> {
    const Op& forward = request.forward;
    Op grad(forward.type() + "_grad");
    grad.AddInput(kept, forward.HasInputSlot(kept) ? forward.Input(kept) : forward.Output(kept));
    for (const char* slot : {"Scale", "Bias"}) grad.AddInput(slot, forward.Input(slot));
    for (const char* slot : {"SavedMean", "SavedVariance"}) grad.AddInput(slot, forward.Output(slot));
    if (forward.HasOutputSlot("ReserveSpace")) grad.AddInput("ReserveSpace", forward.Output("ReserveSpace"));
    if (forward.HasInputSlot("Live")) grad.AddInput("Live", forward.Input("Live"));
    if (forward.GetOr("use_global_stats", false)) {
      grad.AddInput("Mean", forward.Output("MeanOut"));
      grad.AddInput("Variance", forward.Output("VarianceOut"));
    }
    grad.AddInput("Y@GRAD", {request.grad_of(forward.OutputName("Y"))});
    for (const char* slot : {"X", "Scale", "Bias"})
      grad.AddOutput(StrCat(slot, kGradSuffix), OneOrNone(request.grad_of(forward.InputName(slot))));
    for (const NamedAttr& attr : forward.attrs()) grad.Set(attr.name, attr.value);
    return std::vector<Op>{std::move(grad)};
  };
}

OpDef& DeclareBatchNormGrad(OpDef& op) {
  op.Grad({.reads = {"X", "Scale", "Bias"},
           .reads_outputs = {"SavedMean", "SavedVariance"},
           .yields = {"X", "Scale", "Bias"},
           .of = {"Y"},
           .apart = {"Scale", "Bias"}})
      .GradMadeBy(BatchNormGradReading("X"));
  return op.GradDef()
      .Input("Mean", "the running mean, if the forward op used it", AnyType(), Optional())
      .Input("Variance", "the running variance, if the forward op used it", AnyType(), Optional())
      .Input("ReserveSpace", "of a GPU backend; not read", AnyType(), Optional())
      .KernelTypeFrom("X");
}

void AddBatchNormGrad(OpDef& batch_norm) {
  DeclareBatchNormGrad(batch_norm);
  batch_norm.GradKernel<Cpu, BatchNormGradKernel, float, double>();
  batch_norm.GradDef().InPlace("X@GRAD", "Y@GRAD");
}

}  // namespace penstock
