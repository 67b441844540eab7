// batch_norm_relu: batch_norm, the sum with another image, and relu in one pass, with their gradient. The
// executor's plan puts it in the place of these ops (executor/plan/fuse.h).
#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "framework/op/op_registry.h"
#include "operators/common/grad_args.h"
#include "operators/common/nan.h"
#include "operators/common/require_shape.h"
#include "operators/nn/batch_norm.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Y = max(batch_norm(X) + Addend, 0), with the slots, attributes and moments of batch_norm. The gradient reads
Y, and adds MoreGrad to the gradient of Y first. In f32 with channels last, results have the bytes of
batch_norm, elementwise_add and relu one after the other, and of their gradients. In the plain layout those
are faster.)";

template <typename T>
T ReluOf(T z) {
  return z <= 0 ? T{0} : z;
}
template <typename T>
T ReluSlopeOf(T y, T dy) {
  return Choose(y > 0, dy, T{0}, y);
}

template <typename Device, typename T>
class BatchNormReluKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    PENSTOCK_RETURN_IF_ERROR(a_.Prepare(k));
    k.Bind(addend_);
    if constexpr (std::is_same_v<T, float>) {
      if (a_.shape.channels_last) moments_.Prepare(k, a_.shape);
    }
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    const T* const x = std::as_const(k[a_.x]).template Data<T>();
    const T* const addend = addend_ ? std::as_const(k[addend_]).template Data<T>() : nullptr;
    T* const y = k[a_.y].template Data<T>();
    if (a_.shape.PerChannel() <= (a_.uses_running ? 0 : 1)) {  // no variance
      for (Dim i = 0; i < k[a_.x].count(); ++i) y[i] = ReluOf(addend == nullptr ? x[i] : x[i] + addend[i]);
      a_.KeepRunning<T>(k);
      return OkStatus();
    }
    Normalize(k, x, addend, y);
    a_.uses_running ? a_.KeepRunning<T>(k) : a_.MoveRunning<T>(k);
    return OkStatus();
  }

 private:
  void Normalize(KernelRun& k, const T* x, const T* addend, T* y) const {
    if constexpr (std::is_same_v<T, float>) {
      if (a_.shape.channels_last) {
        const RowMoments::Numbers by = moments_.Run(k, a_);
        const std::size_t columns = MatrixOf(a_.shape).columns;
        return EachPartOfRows(a_.shape, [&](std::size_t first, std::size_t rows) {
          const std::size_t at = first * columns;
          vec::NormalizeColumnsRelu({rows, columns}, x + at, by.mean, by.factor, by.bias,
                                    addend == nullptr ? nullptr : addend + at, y + at);
        });
      }
    }
    if (!a_.uses_running) a_.Measure<T>(k);
    const T* const means = k[a_.used_mean()].template Data<T>();
    const T* const variances = k[a_.used_variance()].template Data<T>();
    const T* const scale = std::as_const(k[a_.scale]).template Data<T>();
    const T* const bias = std::as_const(k[a_.bias]).template Data<T>();
    for (Dim c = 0; c < a_.shape.channels; ++c) {
      const T mean = means[c], factor = scale[c] / std::sqrt(variances[c] + static_cast<T>(a_.epsilon));
      a_.shape.EachElement(c, [&](Dim at) {
        const T z = (x[at] - mean) * factor + bias[c];
        y[at] = ReluOf(addend == nullptr ? z : z + addend[at]);
      });
    }
  }

  BatchNormArguments a_;
  In<"Addend"> addend_;
  RowMoments moments_;
};

// With dz = Y > 0 ? dY + MoreGrad : 0, the gradient of Addend: batch_norm_grad of dz.
template <typename Device, typename T>
class BatchNormReluGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    PENSTOCK_RETURN_IF_ERROR(a_.Prepare(k));
    k.Bind(y_, more_, daddend_);
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "Y", k[a_.x].shape));
    if (more_) PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "MoreGrad", k[a_.x].shape));
    for (const Argument* each :
         {&k[y_], &k[more_], &k[a_.dy], &k[a_.dx], &k[a_.dscale], &k[a_.dbias], &k[daddend_]}) {
      if (!*each || each->dtype == k[a_.x].dtype) continue;
      return k.Error("element type of ", each->name, " (", DTypeName(each->dtype), ") must be that of X (",
                     DTypeName(k[a_.x].dtype), ")");
    }
    if constexpr (std::is_same_v<T, float>) {
      if (a_.shape.channels_last) slopes_.Prepare(k, a_.shape);
    }
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    if (a_.CopiesOnly()) {
      ReluAlone(k);
      return OkStatus();
    }
    if constexpr (std::is_same_v<T, float>) {
      if (a_.shape.channels_last) {
        DifferentiateRows(k);
        return OkStatus();
      }
    }
    for (Dim c = 0; c < a_.shape.channels; ++c) Differentiate(k, c);
    return OkStatus();
  }

 private:
  const T* Read(KernelRun& k, Operand operand) const {
    return operand ? std::as_const(k[operand]).template Data<T>() : nullptr;
  }
  T* Written(KernelRun& k, Operand operand) const {
    return operand ? k[operand].template Data<T>() : nullptr;
  }

  // The gradient of Y = max(X + Addend, 0).
  void ReluAlone(KernelRun& k) const {
    for (const Operand zero : std::initializer_list<Operand>{a_.dscale, a_.dbias}) {
      if (zero) std::ranges::fill(k[zero].template Span<T>(), T{0});
    }
    const T *const y = Read(k, y_), *const dy = Read(k, a_.dy), *const more = Read(k, more_);
    T *const dx = Written(k, a_.dx), *const daddend = Written(k, daddend_);
    for (Dim i = 0; i < k[a_.x].count(); ++i) {
      const T slope = ReluSlopeOf(y[i], more == nullptr ? dy[i] : dy[i] + more[i]);
      if (dx != nullptr) dx[i] = slope;
      if (daddend != nullptr) daddend[i] = slope;
    }
  }

  // The first pass leaves dz in the gradient of Addend, or else of X, where the second pass reads it.
  void DifferentiateRows(KernelRun& k) const {
    const vec::ChannelNormGrad g = slopes_.Arguments(k, a_);
    const float *const y = Read(k, y_), *const more = Read(k, more_);
    float* const kept = daddend_ ? Written(k, daddend_) : g.dx;
    const std::size_t columns = MatrixOf(a_.shape).columns;
    const vec::ColumnSlopes by =
        slopes_.OfRows(k, g, [&](std::size_t first, std::size_t rows, float* sums, float* alongs) {
          const std::size_t at = first * columns;
          const vec::ReluSlopes relu = {y + at, g.dy + at, more == nullptr ? nullptr : more + at};
          vec::AddReluSlopes({rows, columns}, g.x + at, relu, g.mean, sums, alongs,
                             kept == nullptr ? nullptr : kept + at);
        });
    if (g.dx == nullptr) return;
    EachPartOfRows(a_.shape, [&](std::size_t first, std::size_t rows) {
      const std::size_t at = first * columns;
      vec::DifferentiateColumns({rows, columns}, g.x + at, kept + at, by, g.dx + at);
    });
  }

  void Differentiate(KernelRun& k, Dim c) const {
    const T *const x = Read(k, a_.x), *const y = Read(k, y_), *const dy = Read(k, a_.dy),
                   *const more = Read(k, more_);
    T *const dx = Written(k, a_.dx), *const daddend = Written(k, daddend_);
    const T mean = Read(k, a_.mean)[c], variance = Read(k, a_.variance)[c], scale = Read(k, a_.scale)[c];
    const T r = a_.uses_running ? T{1} / std::sqrt(variance + static_cast<T>(a_.epsilon)) : variance;
    const auto slope_of = [&](Dim at) {
      return ReluSlopeOf(y[at], more == nullptr ? dy[at] : dy[at] + more[at]);
    };
    T sum = 0, weighted = 0;
    a_.shape.EachElement(c, [&](Dim at) {
      sum += slope_of(at);
      weighted += slope_of(at) * (x[at] - mean) * r;
    });
    if (a_.dbias) k[a_.dbias].template Data<T>()[c] = sum;
    if (a_.dscale) k[a_.dscale].template Data<T>()[c] = weighted;
    const T count = static_cast<T>(a_.shape.PerChannel());
    a_.shape.EachElement(c, [&](Dim at) {
      const T slope = slope_of(at);
      const T through_moments = a_.uses_running ? T{0} : (sum + (x[at] - mean) * r * weighted) / count;
      if (dx != nullptr) dx[at] = scale * r * (slope - through_moments);
      if (daddend != nullptr) daddend[at] = slope;
    });
  }

  BatchNormGradArguments a_;
  In<"Y"> y_;
  In<"MoreGrad"> more_;
  Out<"Addend@GRAD"> daddend_;
  ChannelSlopes slopes_;
};

Status InferBatchNormRelu(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(InferBatchNorm(c));
  if (!c.HasInput("Addend") || Compatible(c.ShapeOf("Addend"), c.ShapeOf("X"))) return OkStatus();
  return c.Error("shape of Addend (", c.ShapeOf("Addend"), ") must be that of X, ", c.ShapeOf("X"));
}

Result<std::vector<Op>> MakeGrad(const GradRequest& request) {
  PENSTOCK_ASSIGN_OR_RETURN(std::vector<Op> made, BatchNormGradReading("X")(request));
  const Op& forward = request.forward;
  made.front().AddInput("Y", forward.Output("Y"));
  if (!forward.InputName("Addend").empty())
    made.front().AddOutput("Addend@GRAD", OneOrNone(request.grad_of(forward.InputName("Addend"))));
  return made;
}

}  // namespace

void RegisterBatchNormRelu(OpRegistry& ops) {
  OpDef& op =
      ops.Add("batch_norm_relu").Doc("batch_norm, a sum and relu in one; made by the executor's plan.", kDoc);
  DeclareBatchNorm(op)
      .Input("Addend", "added before relu; shaped like X", SameTypeAs("X"), Optional())
      .InferShape(InferBatchNormRelu)
      .ChannelsLast(ByAttr("data_layout", "NHWC", {"X", "Y", "Addend", "MoreGrad"}))
      .Kernel<Cpu, BatchNormReluKernel, float, double>()
      .InPlace("Y", "X")
      .InPlace("Y", "Addend");
  op.Grad({.reads = {"X", "Scale", "Bias"},
           .reads_outputs = {"Y", "SavedMean", "SavedVariance"},
           .yields = {"X", "Scale", "Bias", "Addend"},
           .of = {"Y"},
           .apart = {"X", "Scale", "Bias", "Addend"}})
      .GradMadeBy(MakeGrad)
      .GradKernel<Cpu, BatchNormReluGradKernel, float, double>();
  op.GradDef()
      .Input("Mean", "the running mean, if the forward op used it", AnyType(), Optional())
      .Input("Variance", "the running variance, if the forward op used it", AnyType(), Optional())
      .Input("ReserveSpace", "of a GPU backend; not read", AnyType(), Optional())
      .Input("MoreGrad", "added to Y@GRAD; shaped like Y", AnyType(), Optional())
      .InferShape([](InferContext& c) -> Status {
        for (const auto& [from, to] :
             {std::pair("X", "X@GRAD"), {"Scale", "Scale@GRAD"}, {"Bias", "Bias@GRAD"}, {"Y", "Addend@GRAD"}})
          PENSTOCK_RETURN_IF_ERROR(c.ShareAll(from, to));
        return OkStatus();
      })
      .KernelTypeFrom("X")
      .InPlace("X@GRAD", "Y@GRAD")
      .InPlace("Addend@GRAD", "Y@GRAD");
}

}  // namespace penstock
